package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// fma is x*y + z in float32 with one rounding.
func fma(x, y, z float32) float32 {
	p := float64(x) * float64(y) // exact
	s := p + float64(z)
	// Rounding twice, to float64 and to float32, differs from once only if the first is to
	// a number between two of float32: then its error decides.
	back := s - p
	rest := (p - (s - back)) + (float64(z) - back)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			s = math.Float64frombits(bits + 1)
		} else {
			s = math.Float64frombits(bits - 1)
		}
	}
	return float32(s)
}

// tileTwin is the definition of what a tile computes.
func tileTwin(sums, x, w []float32, rows, panels, xStride, xTap, taps, k int) {
	for r := range rows {
		for c := range panels * panelColumns {
			sum := sums[r*panels*panelColumns+c]
			for j := range taps {
				for i := range k {
					weight := w[((c/panelColumns*taps+j)*k+i)*panelColumns+c%panelColumns]
					sum = fma(x[r*xStride+j*xTap+i], weight, sum)
				}
			}
			sums[r*panels*panelColumns+c] = sum
		}
	}
}

func normals(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rand.NormFloat64())
	}
	return v
}

// guardedNormals are normals behind which nobody may read or write.
func guardedNormals(t *testing.T, n int) []float32 {
	v := guarded[float32](t, n)
	copy(v, normals(n))
	return v
}

// TestTiles compares every tile with its definition, to the bit.
func TestTiles(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		n := 0
		for panels, tiles := range k.panels.tiles {
			for rows := 1; rows < len(tiles); rows++ {
				for _, c := range []struct{ k, taps int }{{1, 1}, {4, 1}, {7, 1}, {130, 1}, {3, 2}, {8, 7}} {
					const xTap = 5
					xStride := c.k + 3
					x := guardedNormals(t, (rows-1)*xStride+(c.taps-1)*xTap+c.k)
					w := guardedNormals(t, panels*c.taps*c.k*panelColumns)
					got := guardedNormals(t, rows*panels*panelColumns)
					want := append([]float32{}, got...)
					a := tile{
						sums: &got[0], sumsRow: 4 * panels * panelColumns,
						x: &x[0], xRow: 4 * xStride, xNext: 4 * (xTap - c.k),
						w: &w[0], wPanel: 4 * c.taps * c.k * panelColumns,
						taps: c.taps, k: c.k, resume: true,
					}
					tiles[rows](&a)
					tileTwin(want, x, w, rows, panels, xStride, xTap, c.taps, c.k)
					same(t, fmt.Sprintf("%d rows, %d panels, %+v, resumed", rows, panels, c), got, want)
					a.resume = false
					tiles[rows](&a)
					clear(want)
					tileTwin(want, x, w, rows, panels, xStride, xTap, c.taps, c.k)
					same(t, fmt.Sprintf("%d rows, %d panels, %+v", rows, panels, c), got, want)
				}
				n++
			}
		}
		t.Logf("%d kernels", n)
	})
}

func same(t *testing.T, label string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: number %d of %d is %v, want %v", label, i, len(want), got[i], want[i])
		}
	}
}

// TestPackPanel compares with the definition, for whole and partial panels.
func TestPackPanel(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		s := scratch{kernels: &k}
		n := 0
		for _, rows := range []int{1, 15, 16, 17, 40} {
			for _, width := range []int{1, 15, 16, 31, 32, 33, 100} {
				w := &weight{shape: []int{rows, width}, floats: guardedNormals(t, rows*width)}
				bits := &weight{shape: w.shape, bits: guarded[uint16](t, rows*width)}
				for i, v := range w.floats {
					bits.bits[i] = bf16Bits(v)
				}
				for row := 0; row < rows; row += panelColumns {
					for _, from := range []int{0, width / 3} {
						for _, w := range []*weight{w, bits} {
							count := width - from
							got := guardedNormals(t, count*panelColumns)
							s.packPanel(got, w, row, from, count)
							want := make([]float32, len(got))
							for i := range want {
								if r := row + i%panelColumns; r < rows {
									want[i] = w.row(r, make([]float32, width), &k)[from+i/panelColumns]
								}
							}
							same(t, fmt.Sprintf("%d x %d, bfloat16 %v, from %d, %d", rows, width, w.bits != nil, row, from), got, want)
							n++
						}
					}
				}
			}
		}
		t.Logf("%d panels", n)
	})
}

// TestFinish compares with the definition, NaN and infinity included.
func TestFinish(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		n := 0
		for _, columns := range []int{1, 7, 8, 15, 16, 17, 33, 128} {
			for form := range 8 {
				const rows = 3
				width, stride := ceilDiv(columns, panelColumns)*panelColumns, columns+2
				sums, y := guardedNormals(t, rows*width), guardedNormals(t, rows*stride)
				sums[0], sums[width], y[stride*rows-3] = float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32
				f := finish{sums: &sums[0], sumsRow: 4 * width, y: &y[0], yRow: 4 * stride, rows: rows, columns: columns, round: form&1 != 0}
				var bias, residual []float32
				if form&2 != 0 {
					bias = guardedNormals(t, columns)
					f.bias = &bias[0]
				}
				if form&4 != 0 {
					residual = guardedNormals(t, rows*stride)
					f.residual = &residual[0]
				}
				want := append([]float32{}, y...)
				for r := range rows {
					for c := range columns {
						v := sums[r*width+c]
						if bias != nil {
							v += bias[c]
						}
						v = rounding(f.round).of(v)
						if residual != nil {
							v = rounding(f.round).of(residual[r*stride+c] + v)
						}
						want[r*stride+c] = v
					}
				}
				k.panels.finish(&f)
				for i := range want { // all NaN are one
					if want[i] != want[i] && y[i] != y[i] {
						want[i], y[i] = 0, 0
					}
				}
				same(t, fmt.Sprintf("%d columns, form %d", columns, form), y, want)
				n++
			}
		}
		t.Logf("%d cases", n)
	})
}
