package cpu

import (
	"sync"
	"sync/atomic"
)

// task is an operation cut in chunks that may run in any order and at once. Chunks
// write disjoint memory.
type task interface {
	chunk(i int, s *scratch)
}

// scratch is the working memory of one worker. It grows to what the operations need
// and is then reused.
type scratch struct {
	*kernels

	sums   [][4]float32 // running sums of a tile
	panel  []float32    // widened weights, or panels of them
	rows   []float32    // running sums of some rows, for panels
	a, b   []float32
	values []float32 // panels of a head's values

	last    finish
	tile    tile
	dot     dotProduct
	tiles   []float32      // sums of tiles, aligned
	packed  []uint16       // weights, aligned
	head    []uint16       // keys and values of a head, aligned
	softmax []softmaxState // of the queries of a chunk
	cached  cachedTile
	places  []int    // in a cache
	rounded []uint16 // on their way to a cache
}

// grown returns (*buf)[:n], with more memory behind it when needed. The contents are
// undefined.
func grown[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
}

// rowSpan cuts rows in chunks of some elementChunk numbers.
type rowSpan struct{ rows, each int }

// elementChunk is how many numbers one chunk of an element-wise operation takes.
const elementChunk = 4096

func spanOf(rows, width int) rowSpan {
	return rowSpan{rows, max(1, elementChunk/max(1, width))}
}

func (s rowSpan) chunks() int { return ceilDiv(s.rows, s.each) }

// of returns the rows of chunk i.
func (s rowSpan) of(i int) (lo, hi int) {
	return i * s.each, min((i+1)*s.each, s.rows)
}

// spinRounds is how often a worker that ran out of work looks for more before it
// parks: some 20 microseconds. The small operations of the frame loop follow each
// other faster than a parked worker wakes.
const spinRounds = 10_000

// littleWork is about what one core does before another has noticed that there is a
// job: some 5 microseconds.
const littleWork = 20_000

// pool is a set of workers shared by the queues of a device. Each queue publishes one
// job at a time, works on it itself, and gets help from every worker that is free.
type pool struct {
	helpers   int           // workers, not counting callers
	kernels   *kernels      // for the scratch of each worker
	little    int           // work that a caller does alone
	published atomic.Uint32 // jobs published so far; spinning workers watch it

	mu     sync.Mutex
	wake   sync.Cond // a job was published, or the pool closes
	parked int
	jobs   []*job // published, not yet finished
	closed bool
	ended  sync.WaitGroup
}

// job is one task on its way through the pool. It is kept by its queue and reused.
type job struct {
	task    task
	chunks  int32
	next    atomic.Int32 // first chunk that nobody has taken
	inside  atomic.Int32 // workers that help; raised under pool.mu
	done    sync.Cond    // inside fell to 0
	scratch scratch      // of the caller
}

func newPool(threads int, k *kernels) *pool {
	p := &pool{helpers: threads - 1, kernels: k, little: littleWork}
	p.wake.L = &p.mu
	for range p.helpers {
		p.ended.Go(p.worker)
	}
	return p
}

func (p *pool) newJob() *job {
	j := &job{scratch: scratch{kernels: p.kernels}}
	j.done.L = &p.mu
	return j
}

// close ends the workers and waits for them.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.published.Add(1)
	p.wake.Broadcast()
	p.mu.Unlock()
	p.ended.Wait()
}

// run runs every chunk of t and returns when all are done. The caller takes part, and
// does it alone when work, in multiply-adds or what takes as long, is little.
func (p *pool) run(j *job, t task, chunks, work int) {
	if chunks <= 1 || work < p.little || p.helpers == 0 {
		for i := range chunks {
			t.chunk(i, &j.scratch)
		}
		return
	}
	p.mu.Lock()
	j.task, j.chunks = t, int32(chunks)
	j.next.Store(0)
	p.jobs = append(p.jobs, j)
	p.published.Add(1)
	for range min(p.parked, chunks-1) {
		p.wake.Signal()
	}
	p.mu.Unlock()

	j.work(&j.scratch)

	p.mu.Lock()
	for i, other := range p.jobs {
		if other == j {
			last := len(p.jobs) - 1
			p.jobs[i], p.jobs[last] = p.jobs[last], nil
			p.jobs = p.jobs[:last]
			break
		}
	}
	p.mu.Unlock()
	for range spinRounds { // the others are at their last chunk
		if j.inside.Load() == 0 {
			break
		}
	}
	p.mu.Lock()
	for j.inside.Load() > 0 {
		j.done.Wait()
	}
	j.task = nil
	p.mu.Unlock()
}

// work runs chunks until none is left.
func (j *job) work(s *scratch) {
	for {
		i := j.next.Add(1) - 1
		if i >= j.chunks {
			return
		}
		j.task.chunk(int(i), s)
	}
}

func (p *pool) worker() {
	s := scratch{kernels: p.kernels}
	for {
		j := p.take()
		if j == nil {
			return
		}
		j.work(&s)
		if j.inside.Add(-1) == 0 {
			p.mu.Lock()
			j.done.Signal()
			p.mu.Unlock()
		}
	}
}

// take waits for a job that has chunks left and enters it. It returns nil when the
// pool closes.
func (p *pool) take() *job {
	for {
		seen := p.published.Load()
		if j, closed := p.tryTake(); j != nil || closed {
			return j
		}
		for i := 0; i < spinRounds && p.published.Load() == seen; i++ {
		}
		p.mu.Lock()
		for p.published.Load() == seen && !p.closed {
			p.parked++
			p.wake.Wait()
			p.parked--
		}
		p.mu.Unlock()
	}
}

// tryTake enters the job with the fewest helpers.
func (p *pool) tryTake() (best *job, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range p.jobs {
		if j.next.Load() < j.chunks && (best == nil || j.inside.Load() < best.inside.Load()) {
			best = j
		}
	}
	if best != nil {
		best.inside.Add(1)
	}
	return best, p.closed && best == nil
}
