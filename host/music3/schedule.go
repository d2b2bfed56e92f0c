package music3

import "skald/host/checkpoint"

// eulerStep is one step of the flow's solver.
type eulerStep struct {
	t           float32 // time the flow transformer sees; in the published model 0 noise, 1 data
	dt          float32
	noiseWeight float32 // of the blend with the previous window
}

// schedule returns n Euler steps, as the reference's scheduler makes them of sigmas
// linspace(1, 1/n, n): in float32, rounded after every operation, so t_k is not
// float32(k/n) even where sigma is just 1-t. The published model inverts the sigmas and
// neither shifts nor scales them.
func schedule(n int, c checkpoint.Scheduler) []eulerStep {
	sigmas := make([]float32, n+1) // the last is where the flow ends
	if c.InvertSigmas {
		sigmas[n] = 1
	}
	start, stop := 1.0, 1/float64(n)
	for k := range n {
		sigma := start
		if n > 1 {
			sigma = start + float64(float64(k)*((stop-start)/float64(n-1))) // rounded product: no FMA
			if k == n-1 {
				sigma = stop // linspace ends exactly
			}
		}
		s := float32(sigma)
		s = float32(float32(c.Shift)*s) / (1 + float32(float32(c.Shift-1)*s))
		if c.InvertSigmas {
			s = 1 - s
		}
		sigmas[k] = s
	}
	steps := make([]eulerStep, n)
	for k := range steps {
		t := sigmas[k] * float32(c.NumTrainTimesteps)
		weight := float32(noiseShrink) * t // rounded before the subtraction
		steps[k] = eulerStep{t: t, dt: sigmas[k+1] - sigmas[k], noiseWeight: 1 - float32(weight)}
	}
	return steps
}

// noiseShrink is 1 - 1e-6, by which the reference keeps a trace of the noise at t = 1.
const noiseShrink = 1 - 1e-6

// rounded is the schedule as a bfloat16 run sees it: times and steps are rounded, and
// the noise weight is computed from the rounded time.
func rounded(steps []eulerStep) []eulerStep {
	out := make([]eulerStep, len(steps))
	for k, s := range steps {
		t := round(s.t)
		out[k] = eulerStep{t: t, dt: round(s.dt), noiseWeight: round(1 - round(float32(noiseShrink)*t))}
	}
	return out
}
