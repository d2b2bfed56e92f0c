package music3

// eulerStep is one step of the flow's solver.
type eulerStep struct {
	t           float32 // flow time at the start of the step, 0 noise, 1 data
	dt          float32
	noiseWeight float32 // of the blend with the previous window
}

// schedule returns n Euler steps. The reference's scheduler holds sigmas 1-t from
// linspace(1, 1/n, n) in float32 and inverts them there, so t_k is not float32(k/n):
// t_k = 1 - float32(sigma_k), subtracted in float32, and a final 1.
func schedule(n int) []eulerStep {
	t := make([]float32, n+1)
	start, stop := 1.0, 1/float64(n)
	for k := range n {
		sigma := start
		if n > 1 {
			sigma = start + float64(float64(k)*((stop-start)/float64(n-1))) // rounded product: no FMA
			if k == n-1 {
				sigma = stop // linspace ends exactly
			}
		}
		t[k] = 1 - float32(sigma)
	}
	t[n] = 1
	steps := make([]eulerStep, n)
	for k := range steps {
		weight := float32(noiseShrink) * t[k] // rounded before the subtraction
		steps[k] = eulerStep{t: t[k], dt: t[k+1] - t[k], noiseWeight: 1 - float32(weight)}
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
