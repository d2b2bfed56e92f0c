//go:build cgo && !nocuda

package cuda

// #include <cuda.h>
import "C"

import (
	"errors"
	"runtime"
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// thread is the OS thread on which a device's context is current. It runs one job at a
// time; between jobs it asks whether the events that others wait for have passed.
type thread struct {
	jobs  chan *job
	ended chan struct{}
	waits []*wait
	since time.Time // of the first fruitless question in a row
}

// job is a function to run on the thread.
type job struct {
	run  func() error
	done chan error // takes one error without a reader
}

// wait is an event that somebody waits for.
type wait struct {
	event cu.Event
	done  chan error // takes one error without a reader
}

// A short wait is asked about all the time, a long one now and then: a frame of the frame
// loop is over within milliseconds, a window is not.
const (
	eagerly = 2 * time.Millisecond
	between = 50 * time.Microsecond
)

// startThread starts a thread that begins with init. If that fails there is no thread.
func startThread(init func() error) (*thread, error) {
	t := &thread{jobs: make(chan *job), ended: make(chan struct{})}
	ready := make(chan error)
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // until the goroutine ends, and the OS thread with it
		err := init()
		ready <- err
		if err == nil {
			t.loop()
		}
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return t, nil
}

// do runs f on the thread.
func (t *thread) do(f func() error) error {
	j := job{f, make(chan error, 1)}
	t.run(&j)
	return <-j.done
}

// run gives a job to the thread, or fails it when the thread has ended.
func (t *thread) run(j *job) {
	select {
	case t.jobs <- j:
	case <-t.ended:
		j.done <- ErrClosed
	}
}

// errEnd is returned by the thread's last job.
var errEnd = errors.New("end of the thread")

func (t *thread) loop() {
	for {
		var j *job
		if len(t.waits) == 0 {
			j = <-t.jobs
		} else {
			select {
			case j = <-t.jobs:
			default:
				t.ask()
				continue
			}
		}
		err := j.run()
		if err == errEnd {
			for _, w := range t.waits {
				w.done <- ErrClosed
			}
			j.done <- nil
			return
		}
		j.done <- err
	}
}

// ask tells those whose events have passed.
func (t *thread) ask() {
	kept := t.waits[:0]
	for _, w := range t.waits {
		code := w.query()
		if code == C.CUDA_ERROR_NOT_READY {
			kept = append(kept, w)
			continue
		}
		w.done <- driver(code)
	}
	switch now := time.Now(); {
	case len(kept) < len(t.waits):
		t.since = time.Time{}
	case t.since.IsZero():
		t.since = now
	case now.Sub(t.since) > eagerly:
		time.Sleep(between)
	}
	clear(t.waits[len(kept):])
	t.waits = kept
}

// query asks whether the event has passed. cu.Event.Query would allocate for every "not
// yet", so the event is taken out of its struct, of which it is the only field.
func (w *wait) query() C.CUresult {
	return C.cuEventQuery(*(*C.CUevent)(unsafe.Pointer(&w.event)))
}
