//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import "skald/host/compute"

func (q *queue) Conv1D(y, x compute.Buffer, c compute.Conv) {
	o := operands{op: "Conv1D"}
	w := o.kernel(c, compute.UseConv)
	if c.Dilation < 1 {
		o.fail("Dilation is %d", c.Dilation)
	}
	taps := w.shape[2]
	q.convolve(&o, y, x, c, w, w.shape[0], w.shape[1], c.Length+2*c.Pad-c.Dilation*(taps-1))
}

func (q *queue) ConvTranspose1D(y, x compute.Buffer, c compute.Conv) {
	o := operands{op: "ConvTranspose1D"}
	w := o.kernel(c, compute.UseConvTranspose)
	if c.Stride < 1 {
		o.fail("Stride is %d", c.Stride)
	}
	if c.Dilation > 1 {
		o.fail("Dilation is %d, which a transposed convolution does not have", c.Dilation)
	}
	q.convolve(&o, y, x, c, w, w.shape[1], w.shape[0], (c.Length-1)*c.Stride-2*c.Pad+w.shape[2])
}

// kernel checks what the two have in common before their shapes are known.
func (o *operands) kernel(c compute.Conv, use compute.Use) *weight {
	w := o.weight("W", c.W)
	if w.use != use {
		o.fail("W was loaded for another use")
	}
	if c.Batch < 0 || c.Length <= 0 || c.Pad < 0 {
		o.fail("Batch %d, Length %d, Pad %d", c.Batch, c.Length, c.Pad)
	}
	return w
}

func (q *queue) convolve(o *operands, y, x compute.Buffer, c compute.Conv, w *weight, out, in, length int) {
	if length <= 0 {
		o.fail("an input of %d gives no output with %d taps and pad %d", c.Length, w.shape[2], c.Pad)
	}
	n, m := c.Batch*length*out, c.Batch*c.Length*in
	from, to := o.floats("x", x, m), o.floats("y", y, n)
	args := C.skald_conv{batch: C.int32_t(c.Batch), length: C.int32_t(c.Length), in: C.int32_t(in), out: C.int32_t(out),
		taps: C.int32_t(w.shape[2]), stride: C.int32_t(max(1, c.Stride)), dilation: C.int32_t(max(1, c.Dilation)), pad: C.int32_t(c.Pad),
		w: w.c(), bias: floats(o.vector("Bias", c.Bias, out))}
	if c.Residual != nil {
		residual := o.floats("Residual", c.Residual, n)
		o.inPlace("y", to, "Residual", residual, n)
		args.residual = pointer(residual.at)
	}
	o.apart("y", to, n, "x", from, m)
	if n == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error {
		if w.use == compute.UseConvTranspose {
			return kernel(C.skald_conv_transpose1d(t, pointer(to.at), pointer(from.at), &args, q.s()))
		}
		return kernel(C.skald_conv1d(t, pointer(to.at), pointer(from.at), &args, q.s()))
	})
}
