package cpu

import (
	"skald/host/compute"
)

// queue runs each operation before its call returns, so Sync has nothing to wait
// for. The tasks are kept so that no operation allocates.
type queue struct {
	pool *pool
	job  *job
	err  error // first failure since the last Sync

	recording bool // inside Recording.Run

	linear    linearTask
	bf16      bf16Linear // or nil
	spreading spreadTask
	embed     embedTask
	append    appendTask
	cached    cachedTask
	full      fullTask
	rope      ropeTask
	norm      normTask
	element   elementTask
	gate      gateTask
	add       addTask
	snake     snakeTask
	conv      convTask
	sample    sampleScratch
	flow      flowTask
}

func newQueue(p *pool) *queue {
	q := &queue{pool: p, job: p.newJob()}
	if p.kernels.bf16Linear != nil {
		q.bf16 = p.kernels.bf16Linear()
	}
	return q
}

func (q *queue) Sync() error {
	q.outside("Sync")
	err := q.err
	q.err = nil
	return err
}

func (q *queue) Close() error { return nil }

// run runs the chunks of t, unless the queue failed before; see pool.run.
func (q *queue) run(t task, chunks, work int) {
	if q.err == nil {
		q.pool.run(q.job, t, chunks, work)
	}
}

// fail keeps the first failure.
func (q *queue) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// recording is a sequence of operations: on the CPU, the closure itself.
type recording struct {
	q *queue
	f func(compute.Queue)
}

func (q *queue) Record(f func(compute.Queue)) (compute.Recording, error) {
	return &recording{q, f}, nil
}

func (r *recording) Run() {
	r.q.recording = true
	defer func() { r.q.recording = false }()
	r.f(r.q)
}

func (r *recording) Close() error { return nil }

// outside panics in a recording, where an operation is not allowed.
func (q *queue) outside(op string) {
	if q.recording {
		panic("cpu: " + op + " inside a recording")
	}
}

func (q *queue) Upload(dst compute.Buffer, src []float32) {
	q.outside("Upload")
	o := operands{op: "Upload"}
	y := o.floats("dst", dst, len(src))
	if q.err != nil {
		return
	}
	copy(y, src)
	q.job.scratch.elements(o.dtype == compute.BF16).round(y)
}

func (q *queue) UploadInts(dst compute.Buffer, src []int32) {
	q.outside("UploadInts")
	o := operands{op: "UploadInts"}
	y := o.ints("dst", dst, len(src))
	if q.err == nil {
		copy(y, src)
	}
}

func (q *queue) Download(dst []float32, src compute.Buffer) error {
	q.outside("Download")
	o := operands{op: "Download"}
	x := o.floats("src", src, len(dst))
	if q.err != nil {
		return q.err
	}
	copy(dst, x)
	return nil
}

func (q *queue) DownloadInts(dst []int32, src compute.Buffer) error {
	q.outside("DownloadInts")
	o := operands{op: "DownloadInts"}
	x := o.ints("src", src, len(dst))
	if q.err != nil {
		return q.err
	}
	copy(dst, x)
	return nil
}

func (q *queue) Copy(dst, src compute.Buffer) {
	o := operands{op: "Copy"}
	from, to := o.buffer("src", src), o.buffer("dst", dst)
	if (from.dtype == compute.I32) != (to.dtype == compute.I32) {
		o.fail("from %v to %v", from.dtype, to.dtype)
	}
	if to.Len() < from.Len() {
		o.fail("dst has %d numbers, src %d", to.Len(), from.Len())
	}
	if q.err != nil {
		return
	}
	copy(to.ints, from.ints)
	copy(to.floats, from.floats)
	if from.dtype == compute.F32 {
		q.job.scratch.elements(to.round()).round(to.floats[:len(from.floats)])
	}
}

func (q *queue) Zero(dst compute.Buffer) {
	o := operands{op: "Zero"}
	y := o.buffer("dst", dst)
	if q.err == nil {
		clear(y.floats)
		clear(y.ints)
	}
}
