//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"skald/host/compute"
)

// recording is a CUDA graph. The function it was made of is kept to make it again, which
// is necessary when scratch memory has moved.
type recording struct {
	q          *queue
	f          func(compute.Queue)
	graph      unsafe.Pointer
	generation int  // of the queue's scratch memory
	mayFault   bool // an operation in it may find a fault on the device
	launch     func() error
}

// Record fails when the queue has failed, since the operations would not be queued.
func (q *queue) Record(f func(compute.Queue)) (compute.Recording, error) {
	q.outside("Record")
	r := &recording{q: q, f: f}
	r.launch = func() error { return kernel(C.skald_graph_launch(r.graph, q.s())) }
	if err := r.capture(); err != nil {
		return nil, err
	}
	q.recordings[r] = true
	return r, nil
}

// capture makes the graph.
func (r *recording) capture() error {
	q := r.q
	q.wait() // scratch memory may move
	if q.err != nil {
		return q.err
	}
	q.recording = true
	func() {
		defer func() { q.recording = false }() // f may panic
		r.f(q)
	}()
	operations := q.operations
	q.operations = nil
	r.mayFault, q.mayFault = q.mayFault, false
	err := q.err
	q.err = nil
	if err == nil {
		err = q.d.do("recording a graph", func() error { return r.build(operations) })
	}
	if err != nil {
		return err
	}
	r.generation = q.generation
	return nil
}

// build runs on the device's thread.
func (r *recording) build(operations []operation) error {
	s := r.q.s()
	if err := kernel(C.skald_capture_begin(s)); err != nil {
		return err
	}
	err := runAll(operations)
	var graph unsafe.Pointer
	err = errors.Join(err, kernel(C.skald_capture_end(s, &graph)))
	if err != nil {
		if graph != nil {
			C.skald_graph_free(graph)
		}
		return err
	}
	if r.graph != nil {
		err = kernel(C.skald_graph_free(r.graph))
	}
	r.graph = graph
	return err
}

func (r *recording) Run() {
	q := r.q
	q.outside("Run of a recording")
	if !q.recordings[r] {
		panic("cuda: Run of a closed recording")
	}
	if q.err == nil && r.generation != q.generation {
		if err := r.capture(); err != nil {
			q.fail(fmt.Errorf("cuda: recording again: %w", err))
		}
	}
	q.add("a recording", r.launch)
	q.mayFault = q.mayFault || r.mayFault
}

func (r *recording) Close() error {
	q := r.q
	if !q.recordings[r] {
		return nil
	}
	delete(q.recordings, r)
	q.wait() // it may be under way
	return q.d.giveBack("a graph", r.free)
}

// free runs on the device's thread.
func (r *recording) free() error { return kernel(C.skald_graph_free(r.graph)) }
