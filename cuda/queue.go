//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"skald/host/compute"
)

// queue is a stream. Operations are collected and queued on the stream in batches, on the
// device's thread; errors of queueing are kept.
type queue struct {
	d      *device
	stream cu.Stream

	operations []operation
	err        error // the first failure since the last Sync
	recording  bool  // inside the function of Record
	suspect    bool  // the last operation may have failed on the device, which the next must know

	// What operations found wrong on the device: SKALD_FAULT_..., and a copy on the host.
	fault     cu.DevicePtr
	faultHost *[4]int32
	mayFault  bool // an operation since the last wait may have

	staging   unsafe.Pointer // pinned, for uploads and downloads
	staged    int            // bytes of it that uploads on their way take
	workspace scratch        // of attention
	rows      scratch        // of gathers from cold tables
	// generation counts the moves of scratch memory.
	generation int

	recordings map[*recording]bool

	batch  job  // runs issue
	ending bool // issue ends with the event
	passed wait
}

// operation is what queues one operation on the stream, on the device's thread.
type operation struct {
	name string
	run  func() error
}

// Operations are handed over when there are so many, to keep the GPU busy without
// switching threads for each.
const batchOperations = 32

// stagingBytes is the pinned memory of a queue.
const stagingBytes = 1 << 20

// scratch is device memory that grows. Recordings hold its address.
type scratch struct {
	at    cu.DevicePtr
	bytes int64
}

func (d *device) NewQueue() (compute.Queue, error) {
	q := &queue{d: d, recordings: map[*recording]bool{}}
	q.batch = job{q.issue, make(chan error, 1)}
	q.passed.done = make(chan error, 1)
	var err error
	if q.fault, err = d.alloc(16, "a queue"); err != nil {
		return nil, err
	}
	if q.staging, err = d.hostAlloc(16 + stagingBytes); err != nil {
		return nil, errors.Join(err, d.free(q.fault))
	}
	q.faultHost = (*[4]int32)(unsafe.Add(q.staging, stagingBytes))
	err = d.do("a stream", func() (err error) {
		if q.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return err
		}
		if q.passed.event, err = cu.MakeEvent(cu.DisableTiming); err != nil {
			return errors.Join(err, q.stream.Destroy())
		}
		if err := cu.MemsetD8Async(q.fault, 0, 16, q.stream); err != nil {
			return errors.Join(err, q.destroy())
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, d.free(q.fault), d.hostFree(q.staging))
	}
	d.mu.Lock()
	d.queues[q] = true
	d.mu.Unlock()
	return q, nil
}

// destroy gives back what only the driver knows of. It runs on the device's thread.
func (q *queue) destroy() error {
	err := q.stream.Synchronize()
	for r := range q.recordings {
		err = errors.Join(err, r.free())
	}
	return errors.Join(err, cu.DestroyEvent(&q.passed.event), q.stream.Destroy())
}

func (q *queue) Close() error {
	q.outside("Close")
	q.d.mu.Lock()
	known := q.d.queues[q]
	delete(q.d.queues, q)
	q.d.mu.Unlock()
	if !known {
		return nil // closed before, or with the device
	}
	return errors.Join(q.d.giveBack("a queue", q.destroy), q.d.free(q.fault), q.d.hostFree(q.staging),
		q.d.free(q.workspace.at), q.d.free(q.rows.at))
}

// s is the stream as the kernels want it.
func (q *queue) s() unsafe.Pointer { return unsafe.Pointer(q.stream.C()) }

// add queues an operation, unless the queue failed.
func (q *queue) add(name string, run func() error) {
	if q.suspect && !q.recording {
		q.wait()
	}
	if q.err != nil {
		return
	}
	q.operations = append(q.operations, operation{name, run})
	if len(q.operations) >= batchOperations && !q.recording {
		q.flush()
	}
}

// flush hands the collected operations to the stream.
func (q *queue) flush() {
	if len(q.operations) == 0 && !q.ending {
		return
	}
	if err := q.d.usable(); err != nil {
		q.fail(err)
	} else {
		q.d.thread.run(&q.batch)
		if err := <-q.batch.done; err != nil {
			q.fail(q.d.failed("queueing", err))
		}
	}
	clear(q.operations)
	q.operations = q.operations[:0]
}

// issue runs on the device's thread.
func (q *queue) issue() error {
	if err := runAll(q.operations); err != nil {
		return err
	}
	if !q.ending {
		return nil
	}
	if q.mayFault {
		if err := cu.MemcpyDtoHAsync(unsafe.Pointer(q.faultHost), q.fault, 16, q.stream); err != nil {
			return err
		}
	}
	if err := q.passed.event.Record(q.stream); err != nil {
		return err
	}
	q.d.thread.waits = append(q.d.thread.waits, &q.passed)
	return nil
}

func runAll(operations []operation) error {
	for i := range operations {
		if err := operations[i].run(); err != nil {
			return fmt.Errorf("%s: %w", operations[i].name, err)
		}
	}
	return nil
}

// fail keeps the first failure.
func (q *queue) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// wait waits until the stream has run everything, also after a failure, so that nothing
// of it is under way when the caller knows.
func (q *queue) wait() {
	failed := q.err
	q.err, q.ending = nil, true
	q.flush()
	if q.err != nil { // perhaps of the operations, of which some are queued
		if failed == nil {
			failed = q.err
		}
		q.err = nil
		q.flush()
	}
	q.ending = false
	if q.err == nil {
		if err := <-q.passed.done; err != nil {
			q.fail(q.d.failed("running", err))
		} else if q.mayFault {
			q.readFault()
		}
	}
	if failed != nil {
		q.err = failed
	}
	q.staged, q.mayFault, q.suspect = 0, false, false
}

// readFault makes an error of what an operation found wrong.
func (q *queue) readFault() {
	f := *q.faultHost
	if f[0] == 0 {
		return
	}
	*q.faultHost = [4]int32{}
	switch f[0] {
	case C.SKALD_FAULT_ID:
		q.fail(fmt.Errorf("cuda: EmbedSum: row %d: id %d is outside table %d", f[1], f[3], f[2]))
	case C.SKALD_FAULT_POSITION:
		q.fail(fmt.Errorf("cuda: row %d is at position %d, for which its sequence has no block or the rope table no entry", f[1], f[2]))
	case C.SKALD_FAULT_SEQUENCE:
		q.fail(fmt.Errorf("cuda: row %d belongs to sequence %d, which the table of blocks has not", f[1], f[2]))
	case C.SKALD_FAULT_BLOCK:
		q.fail(fmt.Errorf("cuda: row %d: sequence %d has block %d, which the cache has not", f[1], f[2], f[3]))
	default:
		q.fail(fmt.Errorf("cuda: an operation failed with the unknown numbers %d", f))
	}
	if err := q.d.do("clearing a fault", func() error { return cu.MemsetD8Async(q.fault, 0, 16, q.stream) }); err != nil {
		q.fail(err)
	}
}

func (q *queue) Sync() error {
	q.outside("Sync")
	q.wait()
	err := q.err
	q.err = nil
	return err
}

// outside panics in a recording, where an operation is not allowed.
func (q *queue) outside(op string) {
	if q.recording {
		panic("cuda: " + op + " inside a recording")
	}
}

// grow makes s hold bytes. Operations look up its address when they are queued on the
// stream; what was recorded with the old address must be recorded again.
func (q *queue) grow(s *scratch, bytes int64, what string) {
	if bytes <= s.bytes || q.err != nil {
		return
	}
	if !q.recording { // Record has waited
		q.wait()
	}
	at, err := q.d.alloc(bytes, what)
	if err == nil {
		err = q.d.free(s.at)
		*s = scratch{at, bytes}
		q.generation++
	}
	if err != nil {
		q.fail(err)
	}
}
