package computetest

import (
	"fmt"
	"math"
	"sort"

	"skald/host/compute"
	"skald/host/rng"
)

// drawCase is one song's logits and what decides its draw.
type drawCase struct {
	cond, uncond, exponentials []float32
}

// testSample: guided top-k draws of several songs, with given exponentials and with
// Philox's, ties, constant rows, more candidates asked for than there are.
func testSample(s *suite) {
	for _, n := range []int{1, 3, 7, 17, 63, 300, 1024, 4099} {
		for _, topK := range []int{1, 5, 50} {
			for _, restrict := range []bool{false, true} {
				for _, d := range floats {
					for _, shape := range []string{"normal", "ties", "constant", "far", "spike"} {
						s.begin()
						var songs []drawCase
						for range 3 {
							songs = append(songs, s.drawCase(shape, n, d))
						}
						label := fmt.Sprintf("%s, %d candidates, top %d, restrict %v, %v", shape, n, topK, restrict, d)
						s.draws(label, d, songs, compute.Sample{N: n, TopK: topK, Restrict: restrict, Guidance: 1.5})
						s.philox(label, d, songs, compute.Sample{N: n, TopK: topK, Restrict: restrict, Guidance: 1.5, Draw: s.cases % 8})
					}
				}
			}
		}
	}
	s.firstOfEquals()
	s.notFinite()
}

func (s *suite) drawCase(shape string, n int, d compute.DType) drawCase {
	c := drawCase{s.normal(n, 2, d), s.normal(n, 2, d), make([]float32, n)}
	for i := range n {
		switch shape {
		case "ties": // a coarse grid: many candidates at either threshold
			c.cond[i] = float32(math.Round(float64(c.cond[i])*2) / 2)
			c.uncond[i] = float32(math.Round(float64(c.uncond[i])*2) / 2)
		case "constant":
			c.cond[i], c.uncond[i] = 1, 1
		case "far":
			c.cond[i] *= 64
			c.uncond[i] *= 64
		}
		c.exponentials[i] = float32(s.rand.ExpFloat64()) + 1e-7
	}
	if shape == "spike" {
		c.cond[n/2] = 60
	}
	return c
}

// draws checks one call with given exponentials.
func (s *suite) draws(label string, d compute.DType, songs []drawCase, c compute.Sample) {
	s.Helper()
	var exponentials []float32
	for _, song := range songs {
		exponentials = append(exponentials, song.exponentials...)
	}
	c.Exponentials = s.buffer(compute.F32, exponentials)
	s.sample(label, d, songs, c)
}

// philox checks one call that makes its own draws.
func (s *suite) philox(label string, d compute.DType, songs []drawCase, c compute.Sample) {
	s.Helper()
	var seeds, iterations []int32
	for i := range songs {
		seed, iteration := s.rand.Uint64(), s.rand.Uint32N(9000)
		seeds = append(seeds, int32(uint32(seed)), int32(uint32(seed>>32)))
		iterations = append(iterations, int32(iteration))
		songs[i].exponentials = make([]float32, c.N)
		for j := range c.N {
			songs[i].exponentials[j] = rng.Exponential(seed, iteration, uint32(c.Draw), uint32(j))
		}
	}
	c.Seeds, c.Iterations = s.ints(seeds...), s.ints(iterations...)
	s.sample(label+", Philox", d, songs, c)
}

func (s *suite) sample(label string, d compute.DType, songs []drawCase, c compute.Sample) {
	s.Helper()
	var logits []float32
	var want []int32
	c.Songs, c.OutStride, c.OutColumn = len(songs), 4, 2
	for _, song := range songs {
		logits = append(append(logits, song.cond...), song.uncond...)
		index, margin := song.draw(c)
		if margin < 1e-5 {
			s.Fatalf("%s: a useless case, two candidates are within %g", label, margin)
		}
		want = append(want, -9, -9, index, -9, -9, -9, index, -9)
	}
	start := make([]int32, len(want))
	for i := range start {
		start[i] = -9
	}
	c.Logits, c.Out = s.buffer(d, logits), s.ints(start...)
	s.queue.Sample(c)
	s.sameInts(label, s.readInts(c.Out), want)
}

// draw is the sampling rule in float64, with how far the best is ahead of the second.
func (c *drawCase) draw(p compute.Sample) (index int32, margin float64) {
	kthLargest := func(x []float64) float64 {
		x = append([]float64(nil), x...)
		sort.Sort(sort.Reverse(sort.Float64Slice(x)))
		return x[min(p.TopK, len(x))-1]
	}
	wide := make([]float64, p.N)
	for i, l := range c.cond {
		wide[i] = float64(l)
	}
	threshold := kthLargest(wide)
	guided := make([]float64, p.N)
	for i, l := range c.cond {
		// Rounded like the device's, because ties are decided on these values.
		guided[i] = float64(c.uncond[i] + float32(float32(l-c.uncond[i])*p.Guidance))
		if p.Restrict && float64(l) < threshold {
			guided[i] = math.Inf(-1)
		}
	}
	threshold = kthLargest(guided)
	top := math.Inf(-1)
	for _, g := range guided {
		top = max(top, g)
	}
	best, second := -1.0, -1.0
	for i, g := range guided {
		if g < threshold || math.IsInf(g, -1) {
			continue
		}
		ratio := math.Exp(g-top) / float64(c.exponentials[i])
		if ratio > best {
			index, best, second = int32(i), ratio, best
		} else {
			second = max(second, ratio)
		}
	}
	if second < 0 {
		return index, math.Inf(1)
	}
	return index, best/second - 1
}

// firstOfEquals: equal candidates with equal draws.
func (s *suite) firstOfEquals() {
	for _, first := range []int{0, 5, 63} {
		s.begin()
		const n = 64
		logits, q := make([]float32, 2*n), make([]float32, n)
		for i := range q {
			q[i] = 0.5
			if i < first {
				logits[i], logits[n+i] = -1, -1
			}
		}
		out := s.ints(-9, -9)
		s.queue.Sample(compute.Sample{Logits: s.buffer(compute.F32, logits), Songs: 1, N: n, Guidance: 1.5, TopK: 3, Exponentials: s.buffer(compute.F32, q), Out: out, OutStride: 1})
		s.sameInts("first of equals", s.readInts(out), []int32{int32(first), int32(first)})
	}
}

// notFinite: such a song draws -1, and the song beside it draws as ever.
func (s *suite) notFinite() {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, at := range []int{0, 16, 33, 17, 20} { // of the conditional row, then of the other
			s.begin()
			const n = 17
			logits := s.normal(4*n, 1, compute.F32)
			for i := 2*n + 3; i < 4*n; i += n {
				logits[i] = 50
			}
			logits[at] = float32(bad)
			q := make([]float32, 2*n)
			for i := range q {
				q[i] = 1
			}
			out := s.ints(0, 0, 0, 0)
			s.queue.Sample(compute.Sample{Logits: s.buffer(compute.F32, logits), Songs: 2, N: n, Guidance: 1.5, TopK: 5, Restrict: true, Exponentials: s.buffer(compute.F32, q), Out: out, OutStride: 1})
			s.sameInts(fmt.Sprintf("%v at %d", bad, at), s.readInts(out), []int32{-1, -1, 3, 3})
		}
	}
}
