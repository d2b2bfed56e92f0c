//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"math"
	"unsafe"

	"gorgonia.org/cu"

	"skald/host/compute"
)

// stage takes pinned memory for an upload of at most n bytes, at least of some of them.
// It is free again after the next wait.
func (q *queue) stage(n int) []byte {
	const line = 64
	if stagingBytes-q.staged < min(n, stagingBytes/4) {
		q.wait()
	}
	n = min(n, stagingBytes-q.staged)
	s := unsafe.Slice((*byte)(unsafe.Add(q.staging, q.staged)), n)
	q.staged = min(stagingBytes, (q.staged+n+line-1)/line*line)
	return s
}

// send queues the copy of pinned memory to the device.
func (q *queue) send(op string, dst cu.DevicePtr, src []byte) {
	q.add(op, func() error {
		return cu.MemcpyHtoDAsync(dst, unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), q.stream)
	})
}

func (q *queue) Upload(dst compute.Buffer, src []float32) {
	q.outside("Upload")
	o := operands{op: "Upload"}
	y := o.floats("dst", dst, len(src))
	size := y.dtype.Size()
	for at := 0; at < len(src) && q.err == nil; {
		piece := q.stage(size * (len(src) - at))
		n := len(piece) / size
		if y.dtype == compute.F32 {
			copy(view[float32](piece), src[at:])
		} else {
			narrow(view[uint16](piece), src[at:])
		}
		q.send("Upload", y.at+cu.DevicePtr(at*size), piece[:n*size])
		at += n
	}
}

func (q *queue) UploadInts(dst compute.Buffer, src []int32) {
	q.outside("UploadInts")
	o := operands{op: "UploadInts"}
	y := o.ints("dst", dst, len(src))
	for at := 0; at < len(src) && q.err == nil; {
		piece := q.stage(4 * (len(src) - at))
		n := copy(view[int32](piece), src[at:])
		q.send("UploadInts", y.at+cu.DevicePtr(4*at), piece[:4*n])
		at += n
	}
}

func (q *queue) Download(dst []float32, src compute.Buffer) error {
	q.outside("Download")
	o := operands{op: "Download"}
	x := o.floats("src", src, len(dst))
	return q.receive("Download", x, len(dst), func(at int, piece []byte) {
		if x.dtype == compute.F32 {
			copy(dst[at:], view[float32](piece))
		} else {
			widen(dst[at:], view[uint16](piece))
		}
	})
}

func (q *queue) DownloadInts(dst []int32, src compute.Buffer) error {
	q.outside("DownloadInts")
	o := operands{op: "DownloadInts"}
	x := o.ints("src", src, len(dst))
	return q.receive("DownloadInts", x, len(dst), func(at int, piece []byte) { copy(dst[at:], view[int32](piece)) })
}

// receive copies n numbers of x to the host, piece by piece.
func (q *queue) receive(op string, x *buffer, n int, take func(at int, piece []byte)) error {
	size := x.dtype.Size()
	if n == 0 {
		q.wait()
	}
	for at := 0; at < n && q.err == nil; {
		piece := q.stage(size * (n - at))
		piece = piece[:len(piece)/size*size]
		from := x.at + cu.DevicePtr(at*size)
		q.add(op, func() error {
			return cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(piece)), from, int64(len(piece)), q.stream)
		})
		if q.wait(); q.err == nil {
			take(at, piece)
			at += len(piece) / size
		}
	}
	return q.err
}

func (q *queue) Copy(dst, src compute.Buffer) {
	o := operands{op: "Copy"}
	from, to := o.buffer("src", src), o.buffer("dst", dst)
	if (from.dtype == compute.I32) != (to.dtype == compute.I32) {
		o.fail("from %v to %v", from.dtype, to.dtype)
	}
	if to.n < from.n {
		o.fail("dst has %d numbers, src %d", to.n, from.n)
	}
	if from.n == 0 {
		return
	}
	n := from.n
	q.add("Copy", func() error {
		return kernel(C.skald_copy(C.int(to.dtype), pointer(to.at), C.int(from.dtype), pointer(from.at), C.int64_t(n), q.s()))
	})
}

func (q *queue) Zero(dst compute.Buffer) {
	o := operands{op: "Zero"}
	to := o.buffer("dst", dst)
	if to.n == 0 {
		return
	}
	bytes := to.bytes(to.n)
	q.add("Zero", func() error { return kernel(C.skald_zero(pointer(to.at), C.size_t(bytes), q.s())) })
}

// view is memory as numbers; it must be aligned.
func view[T float32 | int32 | uint16](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// narrow rounds to bfloat16, nearest even.
func narrow(dst []uint16, src []float32) {
	src = src[:min(len(src), len(dst))]
	for i, x := range src {
		b := math.Float32bits(x)
		if b&0x7fffffff > 0x7f800000 {
			dst[i] = uint16(b>>16) | 0x40 // stays a NaN
			continue
		}
		dst[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
	}
}

func widen(dst []float32, src []uint16) {
	for i, b := range src {
		dst[i] = math.Float32frombits(uint32(b) << 16)
	}
}
