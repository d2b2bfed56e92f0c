//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"slices"
	"unsafe"

	"skald/host/compute"
)

func (q *queue) MixLayers(y, x compute.Buffer, rows, n int, weights []float32, scale float32) {
	o := operands{op: "MixLayers"}
	o.size("rows", rows)
	o.size("n", n)
	layers := len(weights)
	if layers == 0 || layers > C.SKALD_LAYERS {
		o.fail("%d weights, want 1 to %d", layers, C.SKALD_LAYERS)
	}
	to, from := o.floats("y", y, rows*n), o.floats("x", x, rows*n*layers)
	o.apart("y", to, rows*n, "x", from, rows*n*layers)
	if rows*n == 0 {
		return
	}
	t, own := C.int(o.dtype), slices.Clone(weights)
	q.add(o.op, func() error {
		return kernel(C.skald_mix_layers(t, pointer(to.at), pointer(from.at), C.int(rows), C.int(n), (*C.float)(unsafe.Pointer(&own[0])), C.int(layers), C.float(scale), q.s()))
	})
}

func (q *queue) NearestRows(y compute.Buffer, outRows int, x compute.Buffer, rows, n int) {
	o := operands{op: "NearestRows"}
	o.size("outRows", outRows)
	o.size("n", n)
	o.size("rows", rows)
	if rows == 0 {
		o.fail("rows is 0")
	}
	to, from := o.floats("y", y, outRows*n), o.floats("x", x, rows*n)
	o.apart("y", to, outRows*n, "x", from, rows*n)
	if outRows*n == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_nearest_rows(t, pointer(to.at), C.int(outRows), pointer(from.at), C.int(rows), C.int(n), q.s()))
	})
}

func (q *queue) SplitChannels(y, x compute.Buffer, rows, n, parts int) {
	o := operands{op: "SplitChannels"}
	o.size("rows", rows)
	o.size("n", n)
	if parts <= 0 || n == 0 || n%parts != 0 {
		o.fail("%d channels cannot be split in %d parts", n, parts)
	}
	to, from := o.floats("y", y, rows*n), o.floats("x", x, rows*n)
	o.apart("y", to, rows*n, "x", from, rows*n)
	if rows == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_split_channels(t, pointer(to.at), pointer(from.at), C.int(rows), C.int(n), C.int(parts), q.s()))
	})
}

func (q *queue) Blend(x, noise, carry compute.Buffer, noiseWeight, time float32) {
	o := operands{op: "Blend"}
	n := o.buffer("carry", carry).n
	c := o.floats("carry", carry, n)
	to, from := o.floats("x", x, n), o.floats("noise", noise, n)
	o.inPlace("x", to, "noise", from, n)
	o.inPlace("x", to, "carry", c, n)
	if n == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_blend(t, pointer(to.at), pointer(from.at), pointer(c.at), C.float(noiseWeight), C.float(time), C.int64_t(n), q.s()))
	})
}

func (q *queue) EulerStep(x, vc, vu compute.Buffer, guidance, dt float32) {
	o := operands{op: "EulerStep"}
	n := o.buffer("x", x).n
	to, conditional := o.floats("x", x, n), o.floats("vc", vc, n)
	o.apart("x", to, n, "vc", conditional, n)
	var unconditional unsafe.Pointer
	if vu != nil {
		b := o.floats("vu", vu, n)
		o.apart("x", to, n, "vu", b, n)
		unconditional = pointer(b.at)
	}
	if n == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_euler_step(t, pointer(to.at), pointer(conditional.at), unconditional, C.float(guidance), C.float(dt), C.int64_t(n), q.s()))
	})
}
