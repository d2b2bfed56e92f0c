package jobs

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"skald/host/engine"
)

// clock is a clock that tests set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func TestRetention(t *testing.T) {
	c := &clock{}
	s := openAt(t, t.TempDir(), func(o *Options) { o.now, o.Keep, o.MaxBytes = c.now, time.Hour, 5000 })
	work(t, s, 1, makeSong)
	var ids []string
	for seed := range uint64(3) {
		ids = append(ids, create(t, s, New{Spec: spec(seed)}).ID)
		wantSong(t, s, ids[seed])
	}
	bytes, _ := s.Usage()
	t.Logf("3 songs have %d bytes", bytes)
	s.o.MaxBytes = bytes - 1
	s.retain(t.Context(), c.now())
	if _, err := s.Get(t.Context(), ids[0], ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("too many bytes, and the oldest job is there: %v", err)
	}
	if after, _ := s.Usage(); after >= bytes || after == 0 {
		t.Errorf("%d bytes, before %d", after, bytes)
	}
	c.ahead.Store(int64(2 * time.Hour))
	s.watchClock(2*time.Hour+time.Second, time.Second) // the clock was set
	s.retain(t.Context(), c.now())
	if s.Counts()[Done] != 2 {
		t.Error("a clock that was set ahead made jobs old")
	}
	c.ahead.Store(int64(4 * time.Hour))
	s.retain(t.Context(), c.now())
	if n := s.Counts()[Done]; n != 0 {
		t.Errorf("%d jobs live longer than they may", n)
	}
	if objects, _ := s.songs.List(t.Context()); len(objects) != 0 {
		t.Errorf("%d objects are left", len(objects))
	}
	// Set back, the clock must not confuse the order.
	c.ahead.Store(-int64(24 * time.Hour))
	a, b := create(t, s, New{Spec: spec(8)}), create(t, s, New{Spec: spec(9)})
	if a.ID >= b.ID {
		t.Error("a later job has a smaller id")
	}
	wantSong(t, s, b.ID)
}

// TestRestart closes the store as a crash does, and opens it again.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, nil)
	began := make(chan engine.Request, 9)
	w := work(t, s, 2, hold(began, nil))
	var ids []string
	for seed := range uint64(4) {
		ids = append(ids, create(t, s, New{Spec: spec(seed)}).ID)
	}
	<-began
	<-began
	s.conn.Close() // so that nothing is given back
	w.cut(ErrStopped)
	w.stop()
	s.Close()

	s = openAt(t, dir, nil)
	for i, id := range ids {
		j, err := s.Get(t.Context(), id, "")
		if want := 1 - min(i/2, 1); err != nil || j.Status != Queued || j.Tries != want {
			t.Errorf("job %d is %s after %d tries, expected %d; %v", i, j.Status, j.Tries, want, err)
		}
	}
	work(t, s, 2, makeSong)
	for _, id := range ids {
		wantSong(t, s, id)
	}
}

// TestPoison lets a job end its worker again and again.
func TestPoison(t *testing.T) {
	dir := t.TempDir()
	var id string
	for try := range 3 {
		s := openAt(t, dir, nil)
		if id == "" {
			id = create(t, s, New{Spec: spec(1)}).ID
		}
		began := make(chan engine.Request, 1)
		w := work(t, s, 1, hold(began, nil))
		<-began
		if j, _ := s.Get(t.Context(), id, ""); j.Tries != try+1 {
			t.Errorf("try %d is counted as %d", try+1, j.Tries)
		}
		s.conn.Close()
		w.cut(ErrStopped)
		w.stop()
		s.Close()
	}
	s := openAt(t, dir, nil)
	work(t, s, 1, func(context.Context, engine.Request) (*engine.Song, error) {
		t.Error("a poison job was begun once more")
		return nil, errors.New("again")
	})
	if j := await(t, s, id, Failed); j.Failure.Code != "too_many_tries" || j.Tries != 3 {
		t.Errorf("%+v after %d tries", j.Failure, j.Tries)
	}
}

// TestMend takes away what a disk may lose.
func TestMend(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, nil)
	w := work(t, s, 1, makeSong)
	done := create(t, s, New{Spec: spec(1)})
	wantSong(t, s, done.ID)
	stopNow(w)
	queued := create(t, s, New{Spec: spec(2)})
	j := await(t, s, done.ID, Done)
	if err := s.songs.Delete(t.Context(), j.Song.Object); err != nil {
		t.Fatal(err)
	}
	if err := s.queue.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = openAt(t, dir, nil)
	if j := await(t, s, done.ID, Failed); j.Failure.Code != "song_lost" {
		t.Errorf("a lost song: %+v", j.Failure)
	}
	work(t, s, 1, makeSong)
	wantSong(t, s, queued.ID)
}

// TestManyJobs lists among many jobs; SKALD_TEST_JOBS says how many.
func TestManyJobs(t *testing.T) {
	n := 500
	if v := os.Getenv("SKALD_TEST_JOBS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Logf("500 jobs; SKALD_TEST_JOBS=10000 lists among as many")
	}
	dir := t.TempDir()
	s := openAt(t, dir, func(o *Options) { o.MaxJobs = n })
	for i := range n {
		r := Record{ID: s.nextID(), Model: "model", Status: Failed, Created: time.Now(), Ended: time.Now()}
		if _, err := s.records.Put(t.Context(), requestKey+r.ID, mustJSON(new(spec(uint64(i))))); err != nil {
			t.Fatal(err)
		}
		revision, err := s.records.Create(t.Context(), recordKey+r.ID, mustJSON(&r))
		if err != nil {
			t.Fatal(err)
		}
		s.index.put(r, revision)
	}
	s.Close()
	begin := time.Now()
	s = openAt(t, dir, func(o *Options) { o.MaxJobs = n })
	opened := time.Since(begin)
	begin = time.Now()
	seen, after := 0, ""
	for more := true; more; {
		var page []Job
		page, more = s.List(Query{Limit: 100, After: after})
		for _, j := range page {
			if _, err := s.Spec(t.Context(), j.ID); err != nil {
				t.Fatal(err)
			}
		}
		seen, after = seen+len(page), page[len(page)-1].ID
	}
	took := time.Since(begin)
	if seen != n {
		t.Errorf("%d of %d jobs were listed", seen, n)
	}
	t.Logf("%d jobs: opened in %v; a page of 100 with requests in %v", n, opened, took*100/time.Duration(n))
}
