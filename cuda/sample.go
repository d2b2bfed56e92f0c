//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import "skald/host/compute"

func (q *queue) Sample(s compute.Sample) {
	o := operands{op: "Sample"}
	o.size("Songs", s.Songs)
	o.size("N", s.N)
	if s.N == 0 || s.TopK <= 0 {
		o.fail("N is %d, TopK is %d", s.N, s.TopK)
	}
	if s.OutColumn < 0 || s.OutColumn >= s.OutStride {
		o.fail("OutColumn is %d, OutStride is %d", s.OutColumn, s.OutStride)
	}
	logits := o.floats("Logits", s.Logits, 2*s.Songs*s.N)
	out := o.ints("Out", s.Out, max(0, (2*s.Songs-1)*s.OutStride+s.OutColumn+1))
	args := C.skald_sample_args{logits: pointer(logits.at), songs: C.int32_t(s.Songs), n: C.int32_t(s.N),
		guidance: C.float(s.Guidance), top_k: C.int32_t(min(s.TopK, s.N)), draw: C.int32_t(s.Draw),
		out: ints(out.at), out_stride: C.int32_t(s.OutStride), out_column: C.int32_t(s.OutColumn)}
	if s.Restrict {
		args.restricted = 1
	}
	if s.Exponentials != nil {
		variates := operands{op: "Sample", dtype: compute.F32}
		args.exponentials = floats(variates.floats("Exponentials", s.Exponentials, s.Songs*s.N).at)
	} else {
		args.seeds = ints(o.ints("Seeds", s.Seeds, 2*s.Songs).at)
		args.iterations = ints(o.ints("Iterations", s.Iterations, s.Songs).at)
		o.size("Draw", s.Draw)
	}
	if s.Songs == 0 {
		return
	}
	t := C.int(o.dtype)
	q.add(o.op, func() error { return kernel(C.skald_sample(t, &args, q.s())) })
}
