//go:build !noasm

package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"skald/host/compute"
)

// tileConvTwin is the sum of one output: x holds for each tap the input row it meets,
// or nil outside; w is [taps][in].
func tileConvTwin(x, w [][]float32, in, groupSteps int) (sum float32) {
	for group := 0; group < in; group += groupSteps * stepTerms {
		for tap, row := range x {
			if row == nil {
				continue
			}
			for k := group; k < min(group+groupSteps*stepTerms, in); k += stepTerms {
				end := min(k+stepTerms, in)
				var even, odd float32
				for i := k; i < end; i++ {
					if (i-k)%2 == 0 {
						even = fma(row[i], w[tap][i], even)
					} else {
						odd = fma(row[i], w[tap][i], odd)
					}
				}
				sum += even + odd
			}
		}
	}
	return sum
}

// TestTileConv compares convolutions of both kinds with the twin, to the bit on the
// processors whose instructions it follows.
func TestTileConv(t *testing.T) {
	if available, _ := machineLevels(); !slices.Contains(available, levelAMX) || !intel() {
		t.Skipf("NOT EXAMINED: all cases of %s: this machine lacks the level amx", t.Name())
	}
	d, err := New(Options{Threads: 2, Level: string(levelAMX)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.(*device).pool.little = 0
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	cases, numbers := 0, 0
	channels := []int{1, 31, 32, 33, 70, 500, 512}
	if testing.Short() {
		channels = []int{1, 32, 70}
	}
	for _, in := range channels {
		for _, taps := range []int{1, 2, 3, 7, 16} {
			for _, out := range []int{1, 16, 17, 33} {
				length, batch := 1+rand.IntN(40), 1+rand.IntN(2)
				if in == 32 {
					length += 300 // several chunks of rows
				}
				for _, stride := range []int{0, 1, 2, 3} { // 0: not transposed
					c := compute.Conv{Batch: batch, Length: length, Dilation: 1 + rand.IntN(4), Stride: stride, Pad: rand.IntN(4)}
					use, shape, outLength := compute.UseConv, []int{out, in, taps}, length+2*c.Pad-c.Dilation*(taps-1)
					if stride > 0 {
						c.Dilation = 1
						use, shape, outLength = compute.UseConvTranspose, []int{in, out, taps}, (length-1)*stride-2*c.Pad+taps
					}
					if outLength <= 0 {
						continue
					}
					v := make([]float32, in*out*taps)
					data := make([]byte, 0, 4*len(v))
					for i := range v {
						v[i] = roundBF16(float32(rand.NormFloat64()))
						data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v[i]))
					}
					if c.W, err = d.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: shape, Data: data}, use, compute.BF16); err != nil {
						t.Fatal(err)
					}
					x := &buffer{dtype: compute.BF16, floats: guarded[float32](t, batch*length*in)}
					y := &buffer{dtype: compute.BF16, floats: guarded[float32](t, batch*outLength*out)}
					for i := range x.floats {
						x.floats[i] = roundBF16(float32(rand.NormFloat64()))
					}
					if stride == 0 {
						q.Conv1D(y, x, c)
					} else {
						q.ConvTranspose1D(y, x, c)
					}
					want := make([]float32, len(y.floats))
					for i := range want {
						entry, u, o := i/out/outLength, i/out%outLength, i%out
						var rows, weights [][]float32
						for k := range taps {
							row, ok := u+k*c.Dilation-c.Pad, true
							w := make([]float32, in)
							for j := range w {
								w[j] = v[(o*in+j)*taps+k]
							}
							if stride > 0 {
								row, ok = (u+c.Pad-k)/stride, (u+c.Pad-k)%stride == 0
								for j := range w {
									w[j] = v[(j*out+o)*taps+k]
								}
							}
							if !ok {
								continue
							}
							weights = append(weights, w)
							if row < 0 || row >= length || u+c.Pad-k < 0 && stride > 0 {
								rows = append(rows, nil)
							} else {
								rows = append(rows, x.floats[(entry*length+row)*in:][:in])
							}
						}
						want[i] = roundBF16(tileConvTwin(rows, weights, in, max(1, convGroupTile/max(1, ceilDiv(taps, max(1, stride))))))
					}
					same(t, fmt.Sprintf("%d channels to %d, %d taps, %+v", in, out, taps, c), y.floats, want)
					cases, numbers = cases+1, numbers+len(want)
				}
			}
		}
	}
	t.Logf("%d cases, %d numbers", cases, numbers)
}
