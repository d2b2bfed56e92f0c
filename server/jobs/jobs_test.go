package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skald/host/audio"
	"skald/host/engine"
)

const rate = 8000

func openAt(t *testing.T, dir string, change func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: dir, Sync: time.Minute, Silence: time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&o)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// song is what the tests' workers make: a song that its request determines.
func song(r engine.Request) (*engine.Song, [2][]float32) {
	var samples [2][]float32
	for i := range 40 * r.MaxFrames {
		x := float32((uint64(i)*(r.Seed+3)+uint64(r.Steps))%201)/100 - 1
		samples[0], samples[1] = append(samples[0], x), append(samples[1], -x/2)
	}
	c := [][]int32{{0}}
	for i := range r.MaxFrames {
		c = append(c, []int32{int32(i)})
	}
	return &engine.Song{SampleRate: rate, Seed: r.Seed, Frames: r.MaxFrames, EndReason: engine.EndLength, Codes: c}, samples
}

func makeSong(_ context.Context, r engine.Request) (*engine.Song, error) {
	s, samples := song(r)
	r.Progress(engine.Progress{Stage: engine.StageAR, Frames: r.MaxFrames, MaxFrames: r.MaxFrames, Fraction: 1})
	return s, r.Sink(samples)
}

// work starts a worker that is stopped before the store closes.
func work(t *testing.T, s *Store, songs int, sing func(context.Context, engine.Request) (*engine.Song, error)) *Worker {
	t.Helper()
	w, err := s.Work(t.Context(), WorkerOptions{
		Name: "test", Model: "model", Songs: songs, SampleRate: rate, Metadata: audio.Metadata{Title: "Song"}, Sing: sing,
		Explain: func(_ Spec, err error) (Failure, bool) {
			return Failure{Code: "broken", Message: err.Error(), Type: "server_error", Status: 500}, strings.Contains(err.Error(), "again")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopNow(w) })
	return w
}

func stopNow(w *Worker) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.Stop(ctx)
}

func spec(seed uint64) Spec {
	return Spec{Model: "model", Input: "la", Instructions: "folk", MaxNewTokens: 20, Seed: seed, Steps: 4, Format: "wav", SampleRate: rate}
}

func create(t *testing.T, s *Store, n New) Job {
	t.Helper()
	j, err := s.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// await waits until a job is in a state.
func await(t *testing.T, s *Store, id string, status Status) Job {
	t.Helper()
	var j Job
	for range 3000 {
		var err error
		if j, err = s.Get(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		if j.Status == status {
			return j
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s is %s, expected %s: %+v", id, j.Status, status, j.Record)
	return j
}

// wantSong checks that a job is done and its song is that of its request.
func wantSong(t *testing.T, s *Store, id string) {
	t.Helper()
	j := await(t, s, id, Done)
	sp, err := s.Spec(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	_, samples := song(sp.Song())
	sum := sha256.New()
	if err := addPCM(sum, samples); err != nil {
		t.Fatal(err)
	}
	if got, want := j.Song.SHA256, hex.EncodeToString(sum.Sum(nil)); got != want || j.Song.Samples != len(samples[0]) {
		t.Errorf("%s: %d samples %s, expected %d %s", id, j.Song.Samples, got, len(samples[0]), want)
	}
	data, err := s.FLAC(t.Context(), &j.Record)
	if err != nil || len(data) < 100 || string(data[:4]) != "fLaC" || int64(len(data)) != j.Song.Bytes {
		t.Errorf("%s: %d bytes of FLAC, %v; the record says %d", id, len(data), err, j.Song.Bytes)
	}
}

func TestSongs(t *testing.T) {
	s := openAt(t, t.TempDir(), nil)
	var ids []string
	for seed := range uint64(5) {
		j := create(t, s, New{Spec: spec(seed)})
		if j.Status != Queued || j.Position != int(seed)+1 {
			t.Errorf("job %d is %s at %d", seed, j.Status, j.Position)
		}
		ids = append(ids, j.ID)
	}
	work(t, s, 2, makeSong)
	for _, id := range ids {
		wantSong(t, s, id)
	}
	if c := s.Counts(); c[Done] != 5 || c[Queued] != 0 {
		t.Errorf("counts %v", c)
	}
	again := spec(1)
	again.SourceJob = ids[1]
	var replay atomic.Pointer[engine.Replay]
	other := openAt(t, t.TempDir(), nil) // the codes stay where they are
	if _, err := other.Create(t.Context(), New{Spec: again}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a source job of another store: %v", err)
	}
	again.Model = "other"
	j := create(t, s, New{Spec: again})
	if err := s.Delete(t.Context(), ids[1]); err != nil { // the copy is the new job's own
		t.Fatal(err)
	}
	w, err := s.Work(t.Context(), WorkerOptions{Name: "other", Model: "other", Songs: 1, SampleRate: rate,
		Sing: func(ctx context.Context, r engine.Request) (*engine.Song, error) {
			replay.Store(r.Replay)
			return makeSong(ctx, r)
		}, Explain: func(_ Spec, err error) (Failure, bool) { return Failure{Message: err.Error()}, false }})
	if err != nil {
		t.Fatal(err)
	}
	defer stopNow(w)
	wantSong(t, s, j.ID)
	if r := replay.Load(); r == nil || len(r.Codes) != 21 || r.Codes[20][0] != 19 {
		t.Errorf("the source's codes came as %+v", r)
	}
}

func TestIdempotency(t *testing.T) {
	s := openAt(t, t.TempDir(), nil)
	first := create(t, s, New{Spec: spec(1), Key: "k", Owner: "a"})
	if same := create(t, s, New{Spec: spec(1), Key: "k", Owner: "a"}); same.ID != first.ID {
		t.Error("the same key and body gave another job")
	}
	if _, err := s.Create(t.Context(), New{Spec: spec(2), Key: "k", Owner: "a"}); !errors.Is(err, ErrConflict) {
		t.Errorf("another body: %v", err)
	}
	if other := create(t, s, New{Spec: spec(2), Key: "k", Owner: "b"}); other.ID == first.ID {
		t.Error("another owner's key gave the first one's job")
	}
	if _, err := s.Get(t.Context(), first.ID, "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("another owner sees the job: %v", err)
	}
	// A crash after the key was entered: the job is made by the next attempt.
	key := digest([]byte("a\x00crash"))
	id := s.nextID()
	if _, err := s.claim(t.Context(), key, idempotency{id, digest(mustJSON(new(spec(3))))}); err != nil {
		t.Fatal(err)
	}
	if j := create(t, s, New{Spec: spec(3), Key: "crash", Owner: "a"}); j.ID != id {
		t.Errorf("a half-made job was made as %s, expected %s", j.ID, id)
	}
	if err := s.Delete(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if j := create(t, s, New{Spec: spec(2), Key: "k", Owner: "a"}); j.ID == first.ID {
		t.Error("a deleted job came back")
	}
}

// hold is a worker's Sing that says when it began and waits to be told or ended.
func hold(began chan<- engine.Request, end <-chan struct{}) func(context.Context, engine.Request) (*engine.Song, error) {
	return func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		began <- r
		select {
		case <-end:
			return makeSong(ctx, r)
		case <-r.Finish:
			r.MaxFrames = 7
			s, err := makeSong(ctx, r)
			s.EndReason = engine.EndFinished
			return s, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func TestCancelFinishDelete(t *testing.T) {
	s := openAt(t, t.TempDir(), nil)
	began, end := make(chan engine.Request), make(chan struct{})
	work(t, s, 1, hold(began, end))
	cancelled := create(t, s, New{Spec: spec(1)})
	finished, waiting := create(t, s, New{Spec: spec(2)}), create(t, s, New{Spec: spec(3)})
	<-began
	if _, err := s.Finish(t.Context(), waiting.ID); !errors.Is(err, ErrQueued) {
		t.Errorf("finishing a waiting job: %v", err)
	}
	if r, err := s.Cancel(t.Context(), cancelled.ID); err != nil || r.Status != Cancelled {
		t.Errorf("cancelling: %v, %s", err, r.Status)
	}
	if _, err := s.Cancel(t.Context(), cancelled.ID); !errors.Is(err, ErrEnded) {
		t.Errorf("cancelling again: %v", err)
	}
	r := <-began // the second: the first has let go
	if _, err := s.Cancel(t.Context(), waiting.ID); err != nil {
		t.Errorf("cancelling a waiting job: %v", err)
	}
	r.Progress(engine.Progress{Stage: engine.StageAR, Frames: 7, MaxFrames: 20})
	for j, _ := s.Get(t.Context(), finished.ID, ""); j.Progress == nil || j.Progress.Frames != 7; j, _ = s.Get(t.Context(), finished.ID, "") {
		time.Sleep(time.Millisecond)
	}
	if f, err := s.Finish(t.Context(), finished.ID); err != nil || f.FinishAt != 7 {
		t.Errorf("finishing: %v, at %d", err, f.FinishAt)
	}
	if j := await(t, s, finished.ID, Done); j.Song.Frames != 7 || j.Song.EndReason != engine.EndFinished {
		t.Errorf("finished with %d frames, %s", j.Song.Frames, j.Song.EndReason)
	}
	running := create(t, s, New{Spec: spec(4)})
	<-began
	if err := s.Delete(t.Context(), running.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), running.ID, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted job: %v", err)
	}
	last := create(t, s, New{Spec: spec(5)})
	<-began // the worker is free again
	close(end)
	wantSong(t, s, last.ID)
	if j := await(t, s, waiting.ID, Cancelled); j.Tries != 0 {
		t.Error("a job that was cancelled in line was begun")
	}
}

// TestLive reads a song while it is made.
func TestLive(t *testing.T) {
	s := openAt(t, t.TempDir(), nil)
	heard, end := make(chan struct{}), make(chan struct{})
	_, samples := song(engine.Request{MaxFrames: 2 * maxLive / 40, Seed: 1})
	work(t, s, 1, func(_ context.Context, r engine.Request) (*engine.Song, error) {
		err := r.Sink(samples)
		close(heard)
		<-end
		made, _ := song(r)
		return made, err
	})
	j := create(t, s, New{Spec: spec(1)})
	if _, _, _, err := s.Live(t.Context(), j.ID+"x", 0); !errors.Is(err, ErrNoAudio) {
		t.Errorf("a job that does not run: %v", err)
	}
	<-heard
	var got [2][]float32
	for len(got[0]) < len(samples[0]) {
		part, all, hz, err := s.Live(t.Context(), j.ID, len(got[0]))
		if err != nil || all != len(samples[0]) || hz != rate || len(part[0]) == 0 {
			t.Fatalf("%d of %d at %d Hz, %v", len(part[0]), all, hz, err)
		}
		got[0], got[1] = append(got[0], part[0]...), append(got[1], part[1]...)
	}
	if !slices.Equal(got[0], samples[0]) || !slices.Equal(got[1], samples[1]) {
		t.Error("other samples arrived")
	}
	close(end)
	await(t, s, j.ID, Done)
}

func TestFailures(t *testing.T) {
	s := openAt(t, t.TempDir(), nil)
	var tries atomic.Int32
	work(t, s, 1, func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		switch {
		case r.Seed == 1:
			return nil, errors.New("for good")
		case tries.Add(1) == 1:
			return nil, errors.New("again, please")
		}
		return makeSong(ctx, r)
	})
	bad, good := create(t, s, New{Spec: spec(1)}), create(t, s, New{Spec: spec(2)})
	if j := await(t, s, bad.ID, Failed); j.Failure.Code != "broken" || j.Failure.Message != "for good" || j.Tries != 1 {
		t.Errorf("%+v after %d tries", j.Failure, j.Tries)
	}
	wantSong(t, s, good.ID)
	if j := await(t, s, good.ID, Done); j.Tries != 2 || j.Failure != nil {
		t.Errorf("%d tries, %+v", j.Tries, j.Failure)
	}
}

// TestGivenBack stops a worker in good order.
func TestGivenBack(t *testing.T) {
	s := openAt(t, t.TempDir(), nil)
	began := make(chan engine.Request)
	w := work(t, s, 1, hold(began, nil))
	j := create(t, s, New{Spec: spec(1)})
	<-began
	stopNow(w)
	if j := await(t, s, j.ID, Queued); j.Tries != 0 {
		t.Errorf("%d tries", j.Tries)
	}
	work(t, s, 1, makeSong)
	wantSong(t, s, j.ID)
}

func TestLimit(t *testing.T) {
	s := openAt(t, t.TempDir(), func(o *Options) { o.MaxJobs = 2 })
	create(t, s, New{Spec: spec(1)})
	create(t, s, New{Spec: spec(2)})
	var full *FullError
	if _, err := s.Create(t.Context(), New{Spec: spec(3), Key: "k"}); !errors.As(err, &full) || full.Waiting != 2 {
		t.Errorf("a third job: %v", err)
	}
	if n := s.OpenJobs(""); n != 2 {
		t.Errorf("%d open jobs", n)
	}
}

func TestList(t *testing.T) {
	s := openAt(t, t.TempDir(), nil)
	var ids []string
	for i := range 7 {
		ids = append(ids, create(t, s, New{Spec: spec(uint64(i)), Owner: []string{"a", "b"}[i%2]}).ID)
	}
	if _, err := s.Cancel(t.Context(), ids[4]); err != nil {
		t.Fatal(err)
	}
	list := func(q Query) (got []string, more bool) {
		jobs, more := s.List(q)
		for _, j := range jobs {
			got = append(got, fmt.Sprint(slices.Index(ids, j.ID), "@", j.Position))
		}
		return got, more
	}
	for _, tt := range []struct {
		q    Query
		want string
		more bool
	}{
		{Query{Limit: 3}, "[6@6 5@5 4@0]", true},
		{Query{Limit: 3, After: ids[4]}, "[3@4 2@3 1@2]", true},
		{Query{Limit: 3, After: ids[1]}, "[0@1]", false},
		{Query{Limit: 9, Owner: "b"}, "[5@5 3@4 1@2]", false},
		{Query{Limit: 9, Statuses: []Status{Cancelled, Done}}, "[4@0]", false},
	} {
		if got, more := list(tt.q); fmt.Sprint(got) != tt.want || more != tt.more {
			t.Errorf("%+v: %v, more %v; want %s, %v", tt.q, got, more, tt.want, tt.more)
		}
	}
}

func TestStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := openAt(t, dir, nil)
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second server: %v", err)
	}
	s.Close()
	version := filepath.Join(dir, "VERSION")
	if data, err := os.ReadFile(version); err != nil || string(data) != "1\n" {
		t.Errorf("VERSION is %q, %v", data, err)
	}
	for text, part := range map[string]string{"2\n": "newer program", "x": "expected a number", "0": "expected a number"} {
		if err := os.WriteFile(version, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("VERSION %q: %v", text, err)
		}
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: other}); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("somebody's folder: %v", err)
	}
}
