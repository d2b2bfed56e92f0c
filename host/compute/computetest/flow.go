package computetest

import (
	"fmt"

	"skald/host/compute"
)

func testMixLayers(s *suite) {
	for _, c := range normShapes {
		for _, layers := range []int{1, 3, 8} {
			for _, d := range floats {
				s.begin()
				x := s.normal(c.rows*layers*c.n, 1, d)
				weights, scale := s.normal(layers, 1, compute.F32), float32(1.3)
				in, out := s.buffer(d, x), s.empty(d, c.rows*c.n)
				s.queue.MixLayers(out, in, c.rows, c.n, weights, scale)
				got := s.read(out)
				label := fmt.Sprintf("%+v, %d layers, %v", c, layers, d)
				s.check(label, got, intervals(len(got), func(i int) interval {
					var t sum
					for l, w := range weights {
						t.add(float64(w) * float64(x[(i/c.n*layers+l)*c.n+i%c.n]))
					}
					return t.interval().store(d).mul(exactly(scale)).store(d)
				}))
				s.rowsAlone(label, c.rows, in, got, func(y, x compute.Buffer, rows int) { s.queue.MixLayers(y, x, rows, c.n, weights, scale) })
			}
		}
	}
}

// testNearestRows: all lengths of a window, and the other direction.
func testNearestRows(s *suite) {
	const n = 3
	for rows := 1; rows <= 200; rows++ {
		for _, outRows := range []int{max(1, rows*441/128), rows, rows/3 + 1} {
			for _, d := range floats {
				s.begin()
				x := s.normal(rows*n, 1, d)
				y := s.empty(d, outRows*n)
				s.queue.NearestRows(y, outRows, s.buffer(d, x), rows, n)
				step := float32(rows) / float32(outRows)
				s.check(fmt.Sprintf("%d to %d", rows, outRows), s.read(y), intervals(outRows*n, func(i int) interval {
					row := min(int(float32(float32(i/n)*step)), rows-1)
					return exactly(x[row*n+i%n])
				}))
			}
		}
	}
}

func testSplitChannels(s *suite) {
	for _, c := range []struct{ rows, n, parts int }{{1, 1, 1}, {5, 6, 2}, {17, 6, 3}, {65, 128, 2}, {3, 7, 7}} {
		for _, d := range floats {
			s.begin()
			x := s.normal(c.rows*c.n, 1, d)
			y := s.empty(d, len(x))
			s.queue.SplitChannels(y, s.buffer(d, x), c.rows, c.n, c.parts)
			each := c.n / c.parts
			s.check(fmt.Sprintf("%+v, %v", c, d), s.read(y), intervals(len(x), func(i int) interval {
				part, row, channel := i/each/c.rows, i/each%c.rows, i%each
				return exactly(x[row*c.n+part*each+channel])
			}))
		}
	}
}

// testBlend leaves what lies beyond the carry.
func testBlend(s *suite) {
	for _, n := range elementCounts {
		for _, d := range floats {
			for _, t := range []float32{0, 1.0 / 3, 0.9, 1} {
				s.begin()
				x, noise, carry := s.normal(n+5, 1, d), s.normal(n+5, 1, d), s.normal(n, 1, d)
				weight := 1 - float32(float32(0.999999)*t)
				out := s.buffer(d, x)
				s.queue.Blend(out, s.buffer(d, noise), s.buffer(d, carry), weight, t)
				s.check(fmt.Sprintf("%d of %v, t %v", n, d, t), s.read(out), intervals(n+5, func(i int) interval {
					if i >= n {
						return exactly(x[i])
					}
					return exactly(weight).mul(exactly(noise[i])).store(d).add(exactly(t).mul(exactly(carry[i])).store(d)).store(d)
				}))
			}
		}
	}
}

func testEulerStep(s *suite) {
	for _, n := range elementCounts {
		for _, d := range floats {
			for _, guided := range []bool{false, true} {
				s.begin()
				x, vc, vu := s.normal(n, 1, d), s.normal(n, 1, d), s.normal(n, 1, d)
				guidance, dt := float32(1.7), float32(round(1.0/30, d))
				out := s.buffer(d, x)
				var other compute.Buffer
				if guided {
					other = s.buffer(d, vu)
				}
				s.queue.EulerStep(out, s.buffer(d, vc), other, guidance, dt)
				s.check(fmt.Sprintf("%d of %v, guided %v", n, d, guided), s.read(out), intervals(n, func(i int) interval {
					v := exactly(vc[i])
					if guided {
						difference := v.add(exactly(-vu[i])).store(d)
						v = exactly(vu[i]).add(exactly(guidance).mul(difference).store(d)).store(d)
					}
					return exactly(x[i]).add(exactly(dt).mul(v).store(d)).store(d)
				}))
			}
		}
	}
}
