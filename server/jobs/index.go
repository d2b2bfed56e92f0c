package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// index holds all records in memory, as the store tells of them, and the progress of
// running jobs: what is listed and watched needs no question to the store.
type index struct {
	store   *Store
	watcher jetstream.KeyWatcher
	told    *nats.Subscription
	loaded  chan struct{} // closed once everything stored has been seen

	mu     sync.Mutex
	jobs   map[string]*entry
	order  []string // ids, oldest first
	counts map[Status]int
	bytes  int64 // of stored songs
}

type entry struct {
	record   Record
	revision uint64
	progress *Progress
	watchers []chan struct{} // each holds a token after a change
}

func newIndex(s *Store) (*index, error) {
	x := &index{store: s, loaded: make(chan struct{}), jobs: map[string]*entry{}, counts: map[Status]int{}}
	var err error
	if x.watcher, err = s.records.Watch(s.closing, recordKey+"*"); err != nil {
		return nil, err
	}
	x.told, err = s.conn.Subscribe(tellSubject+"*", func(m *nats.Msg) {
		var p Progress
		if json.Unmarshal(m.Data, &p) == nil {
			x.progress(&p)
		}
	})
	return x, err
}

// run takes in changes until the store closes.
func (x *index) run() {
	loaded := sync.OnceFunc(func() { close(x.loaded) })
	for e := range x.watcher.Updates() {
		if e == nil {
			loaded()
			continue
		}
		id := strings.TrimPrefix(e.Key(), recordKey)
		if e.Operation() != jetstream.KeyValuePut {
			x.remove(id)
			continue
		}
		var r Record
		if err := json.Unmarshal(e.Value(), &r); err != nil || r.ID != id {
			x.store.log.Error("a job's record cannot be read", "id", id, "error", err)
			continue
		}
		x.put(r, e.Revision())
	}
}

func (x *index) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case <-x.loaded:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *index) close() {
	// The connection ends right after.
	_ = x.watcher.Stop()
	_ = x.told.Unsubscribe()
}

// put takes in a record, unless a newer one is known.
func (x *index) put(r Record, revision uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.jobs[r.ID]
	if e == nil {
		e = &entry{}
		x.jobs[r.ID] = e
		if at, found := slices.BinarySearch(x.order, r.ID); !found {
			x.order = slices.Insert(x.order, at, r.ID)
		}
	} else if revision <= e.revision {
		return
	} else {
		x.count(&e.record, -1)
	}
	if e.record.Tries != r.Tries || r.Status != Running {
		e.progress = nil
	}
	e.record, e.revision = r, revision
	x.count(&e.record, 1)
	e.notify()
}

func (x *index) count(r *Record, n int) {
	if !r.Waits {
		x.counts[r.Status] += n
	}
	if r.Song != nil {
		x.bytes += int64(n) * r.Song.Bytes
	}
}

func (x *index) remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.jobs[id]
	if e == nil {
		return
	}
	x.count(&e.record, -1)
	delete(x.jobs, id)
	if at, found := slices.BinarySearch(x.order, id); found {
		x.order = slices.Delete(x.order, at, at+1)
	}
	e.notify()
}

// progress takes in what a worker tells of a running job.
func (x *index) progress(p *Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.jobs[p.Job]
	if e == nil || e.record.Status != Running || e.record.Tries != p.Try ||
		e.progress != nil && e.progress.Sequence >= p.Sequence {
		return
	}
	e.progress = p
	e.notify()
}

func (e *entry) notify() {
	for _, w := range e.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// Watch returns a channel that holds a token after a change of a job, its deletion
// included. It is not closed; call stop.
func (s *Store) Watch(id string) (changed <-chan struct{}, stop func()) {
	x := s.index
	c := make(chan struct{}, 1)
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.jobs[id]
	if e == nil {
		return c, func() {}
	}
	e.watchers = append(e.watchers, c)
	return c, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		e.watchers = slices.DeleteFunc(e.watchers, func(w chan struct{}) bool { return w == c })
	}
}

// Get returns a job, of anyone or, unless owner is empty, of that owner.
func (s *Store) Get(ctx context.Context, id, owner string) (Job, error) {
	j, ok := s.index.get(id)
	if !ok { // perhaps made elsewhere a moment ago
		r, revision, err := s.read(ctx, id)
		if err != nil {
			return Job{}, err
		}
		s.index.put(r, revision)
		if j, ok = s.index.get(id); !ok {
			return Job{}, ErrNotFound
		}
	}
	if j.Waits || owner != "" && j.Owner != owner {
		return Job{}, ErrNotFound
	}
	return j, nil
}

func (x *index) get(id string) (Job, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.jobs[id]
	if e == nil {
		return Job{}, false
	}
	j := e.job()
	if e.record.Status == Queued {
		for _, other := range x.order {
			if o := x.jobs[other]; o.record.Status == Queued && o.record.Model == j.Model {
				j.Position++
			}
			if other == id {
				break
			}
		}
	}
	return j, true
}

func (e *entry) job() Job { return Job{Record: e.record, Revision: e.revision, Progress: e.progress} }

// Query chooses jobs.
type Query struct {
	Owner    string   // "": of anyone
	Statuses []Status // none: all
	After    string   // id of the last job of the page before; "": the first page
	Limit    int
}

// List returns jobs, newest first, and whether there are more.
func (s *Store) List(q Query) (jobs []Job, more bool) {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	end := len(x.order)
	if q.After != "" {
		end, _ = slices.BinarySearch(x.order, q.After)
	}
	for _, id := range slices.Backward(x.order[:end]) {
		e := x.jobs[id]
		r := &e.record
		if r.Waits || q.Owner != "" && r.Owner != q.Owner || len(q.Statuses) > 0 && !slices.Contains(q.Statuses, r.Status) {
			continue
		}
		if len(jobs) == q.Limit {
			more = true
			break
		}
		jobs = append(jobs, e.job())
	}
	x.position(jobs)
	return jobs, more
}

// position tells the waiting ones of a list where they stand.
func (x *index) position(jobs []Job) {
	want := map[string]int{}
	for i := range jobs {
		if jobs[i].Status == Queued {
			want[jobs[i].ID] = i
		}
	}
	if len(want) == 0 {
		return
	}
	waiting := map[string]int{}
	for _, id := range x.order {
		if r := &x.jobs[id].record; r.Status == Queued {
			waiting[r.Model]++
			if i, ok := want[id]; ok {
				jobs[i].Position = waiting[r.Model]
			}
		}
	}
}

// Counts tells how many jobs there are in each state.
func (s *Store) Counts() map[Status]int {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	counts := map[Status]int{}
	for _, status := range Statuses() {
		counts[status] = x.counts[status]
	}
	return counts
}

// Usage tells the bytes of all stored songs, and since when the longest waiting job waits;
// zero when none does.
func (s *Store) Usage() (bytes int64, oldest time.Time) {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range x.order {
		if r := &x.jobs[id].record; r.Status == Queued {
			oldest = r.Created
			break
		}
	}
	return x.bytes, oldest
}

// Open jobs of an owner: those that have not ended.
func (s *Store) OpenJobs(owner string) (n int) {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.jobs {
		if e.record.Owner == owner && !e.record.Status.Ended() {
			n++
		}
	}
	return n
}

// records copies all records.
func (x *index) records() []Record {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]Record, 0, len(x.order))
	for _, id := range x.order {
		all = append(all, x.jobs[id].record)
	}
	return all
}
