//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"

	"skald/host/compute"
)

func (q *queue) RMSNorm(y, x compute.Buffer, w compute.Weight, rows int, eps float32) {
	o := operands{op: "RMSNorm"}
	n := o.weight("w", w).numbers()
	scale := floats(o.vector("w", w, n))
	to, from := o.rows(y, x, rows, n)
	if rows == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_rms_norm(t, to, from, scale, C.int(rows), C.int(n), C.float(eps), q.s()))
	})
}

func (q *queue) LayerNorm(y, x compute.Buffer, w, b compute.Weight, rows int, eps float32) {
	o := operands{op: "LayerNorm"}
	n := o.weight("w", w).numbers()
	o.weight("b", b)
	scale, shift := floats(o.vector("w", w, n)), floats(o.vector("b", b, n))
	to, from := o.rows(y, x, rows, n)
	if rows == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_layer_norm(t, to, from, scale, shift, C.int(rows), C.int(n), C.float(eps), q.s()))
	})
}

// rows unwraps an output and an input of rows*n numbers.
func (o *operands) rows(y, x compute.Buffer, rows, n int) (to, from unsafe.Pointer) {
	o.size("rows", rows)
	out, in := o.floats("y", y, rows*n), o.floats("x", x, rows*n)
	o.inPlace("y", out, "x", in, rows*n)
	return pointer(out.at), pointer(in.at)
}

func (q *queue) SwiGLU(y, gate, up compute.Buffer) {
	q.elements("SwiGLU", y, gate, up, func(t C.int, y, a, b unsafe.Pointer, n C.int64_t) C.int {
		return C.skald_swiglu(t, y, a, b, n, q.s())
	})
}

func (q *queue) SiLU(y, x compute.Buffer) {
	q.elements("SiLU", y, x, nil, func(t C.int, y, a, _ unsafe.Pointer, n C.int64_t) C.int {
		return C.skald_silu(t, y, a, n, q.s())
	})
}

func (q *queue) Tanh(y, x compute.Buffer) {
	q.elements("Tanh", y, x, nil, func(t C.int, y, a, _ unsafe.Pointer, n C.int64_t) C.int {
		return C.skald_tanh(t, y, a, n, q.s())
	})
}

// elements queues an operation whose inputs have the length of y; b may be nil.
func (q *queue) elements(op string, y, a, b compute.Buffer, run func(t C.int, y, a, b unsafe.Pointer, n C.int64_t) C.int) {
	o := operands{op: op}
	n := o.buffer("y", y).n
	to, first := o.floats("y", y, n), o.floats("the first input", a, n)
	o.inPlace("y", to, "the first input", first, n)
	second := cu.DevicePtr(0)
	if b != nil {
		in := o.floats("the second input", b, n)
		o.inPlace("y", to, "the second input", in, n)
		second = in.at
	}
	if n == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(op, func() error {
		return kernel(run(t, pointer(to.at), pointer(first.at), pointer(second), C.int64_t(n)))
	})
}

func (q *queue) ValueSiLU(y, x compute.Buffer, rows int) {
	o := operands{op: "ValueSiLU"}
	o.size("rows", rows)
	n := o.buffer("y", y).n
	to := o.floats("y", y, n)
	if rows == 0 && n == 0 {
		return
	}
	if rows == 0 || n%rows != 0 {
		o.fail("y has %d numbers, which is not %d rows", n, rows)
	}
	from := o.floats("x", x, 2*n)
	o.apart("y", to, n, "x", from, 2*n)
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_value_silu(t, pointer(to.at), pointer(from.at), C.int(rows), C.int(n/rows), q.s()))
	})
}

func (q *queue) Add(y, a, b compute.Buffer) {
	o := operands{op: "Add"}
	n, width := o.buffer("y", y).n, o.buffer("b", b).n
	to, repeated := o.floats("y", y, n), o.floats("b", b, width)
	if n == 0 {
		return
	}
	if width == 0 || n%width != 0 {
		o.fail("y has %d numbers, which is not rows of b's %d", n, width)
	}
	from := o.floats("a", a, n)
	o.inPlace("y", to, "a", from, n)
	if n != width {
		o.apart("y", to, n, "b", repeated, width)
	} else {
		o.inPlace("y", to, "b", repeated, n)
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_add(t, pointer(to.at), pointer(from.at), pointer(repeated.at), C.int64_t(n/width), C.int64_t(width), q.s()))
	})
}

func (q *queue) Snake(y, x compute.Buffer, alpha compute.Weight, rows int) {
	o := operands{op: "Snake"}
	channels := o.weight("alpha", alpha).numbers()
	a := floats(o.vector("alpha", alpha, channels))
	to, from := o.rows(y, x, rows, channels)
	if rows == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_snake(t, to, from, a, C.int64_t(rows), C.int(channels), q.s()))
	})
}

func (q *queue) Finite(out, x compute.Buffer) {
	o := operands{op: "Finite"}
	n := o.buffer("x", x).n
	to, from := o.ints("out", out, 1), o.floats("x", x, n)
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		return kernel(C.skald_finite(t, ints(to.at), pointer(from.at), C.int64_t(n), q.s()))
	})
}
