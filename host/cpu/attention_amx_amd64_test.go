//go:build !noasm

package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func needAVX512(t *testing.T) {
	t.Helper()
	if available, _ := machineLevels(); !slices.Contains(available, levelAVX512) {
		t.Skipf("NOT EXAMINED: all cases of %s: this machine lacks AVX-512", t.Name())
	}
}

func bf16Numbers(r *rand.Rand, x []float32) {
	for i := range x {
		x[i] = roundBF16(float32(r.NormFloat64()))
	}
}

func TestPackColumns(t *testing.T) {
	needAVX512(t)
	r := rand.New(rand.NewPCG(5, 1))
	count := 0
	for rows := 1; rows <= 16; rows++ {
		for columns := 1; columns <= 16; columns++ {
			const stride, dstRow = 21, 40
			src := guarded[float32](t, (rows-1)*stride+columns)
			bf16Numbers(r, src)
			dst := guarded[uint16](t, (columns-1)*dstRow+16)
			for i := range dst {
				dst[i] = 7
			}
			packColumns(&dst[0], 2*dstRow, &src[0], 4*stride, rows, columns)
			for i, got := range dst {
				c, j, want := i/dstRow, i%dstRow, uint16(7)
				switch {
				case j < rows:
					want = bf16Bits(src[j*stride+c])
				case j < 16:
					want = 0
				}
				if got != want {
					t.Fatalf("%d rows of %d: column %d, row %d is %#x, want %#x", rows, columns, c, j, got, want)
				}
				count++
			}
		}
	}
	t.Logf("%d numbers", count)
}

// TestSoftmaxColumns compares each query with the row of a level that computes weights by
// the same instructions: the three terms of a weight must sum up to it exactly.
func TestSoftmaxColumns(t *testing.T) {
	needAVX512(t)
	k := machineKernels(levelAVX512)
	r := rand.New(rand.NewPCG(5, 2))
	count := 0
	for _, keys := range []int{1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 100, 255, tileKeys} {
		for _, rows := range []int{0, 1, 16, 48} {
			const term = tileKeys * tileQueries
			scores := guarded[float32](t, keys*tileQueries)
			top, total := guarded[float32](t, tileQueries), guarded[float32](t, tileQueries)
			weights, sums := guarded[uint16](t, 3*term), guarded[float32](t, rows*tileQueries)
			bf16Numbers(r, sums)
			before := slices.Clone(sums)
			states := make([]softmaxState, tileQueries)
			for q := range states {
				states[q].top = negInf
				if rows > 0 {
					states[q] = softmaxState{float32(r.NormFloat64()), 1 + r.Float32()}
				}
				if rows > 1 && q/16 == keys%2 { // half of the queries need not shrink
					states[q].top += 100
				}
				top[q], total[q] = states[q].top, states[q].total
			}
			for i := range scores {
				scores[i] = float32(r.NormFloat64() * 8)
			}
			p := columnSoftmax{scores: &scores[0], keys: keys, scale: 0.3, top: &top[0], total: &total[0], weights: &weights[0], term: 2 * term, rows: rows}
			if rows > 0 {
				p.sums = &sums[0]
			}
			softmaxColumns(&p)
			for q := range tileQueries {
				row := make([]float32, keys)
				for j := range row {
					row[j] = scores[j*tileQueries+q]
				}
				shrink := k.softmaxRow(row, 0.3, &states[q])
				for j, want := range row {
					at := j/stepTerms*stepTerms*tileQueries + q/16*16*stepTerms + pairAt(j%stepTerms, q%16)
					var got float32
					for i := 2; i >= 0; i-- {
						got += bf16Float(weights[i*term+at])
					}
					if got != want {
						t.Fatalf("%d keys: weight of key %d, query %d is %g, want %g", keys, j, q, got, want)
					}
				}
				if e := ulps(total[q], float64(states[q].total)); e > 8 || top[q] != states[q].top {
					t.Fatalf("%d keys, query %d: top %g, total %g, want %+v", keys, q, top[q], total[q], states[q])
				}
				for i := range rows {
					if got, want := sums[i*tileQueries+q], before[i*tileQueries+q]*shrink; got != want {
						t.Fatalf("%d keys, query %d: sum %d is %g, want %g", keys, q, i, got, want)
					}
				}
				if keys%2 == 1 { // the other half of the last pair belongs to no key
					at := keys/stepTerms*stepTerms*tileQueries + q/16*16*stepTerms + pairAt(keys%stepTerms, q%16)
					if weights[at] != 0 || weights[term+at] != 0 || weights[2*term+at] != 0 {
						t.Fatalf("%d keys: a key more has a weight", keys)
					}
				}
				count += keys + rows
			}
		}
	}
	t.Logf("%d weights and sums", count)
}

func TestStoreColumns(t *testing.T) {
	needAVX512(t)
	r := rand.New(rand.NewPCG(5, 3))
	count := 0
	for _, rows := range []int{1, 2, 7, 15, 16} {
		for _, columns := range []int{1, 5, 16, 17, 33, 64} {
			const stride = 71
			sums, total := guarded[float32](t, roundUp(columns, 16)*tileQueries), guarded[float32](t, 16)
			y := guarded[float32](t, (rows-1)*stride+columns)
			for i := range sums {
				sums[i] = float32(r.NormFloat64())
			}
			for i := range total {
				total[i] = 1 + r.Float32()
			}
			want := make([]float32, len(y))
			for q := range rows {
				for c := range columns {
					want[q*stride+c] = roundBF16(sums[c*tileQueries+q] * (1 / total[q]))
				}
			}
			storeColumns(&columnStore{sums: &sums[0], total: &total[0], y: &y[0], yRow: 4 * stride, rows: rows, columns: columns})
			sameBits(t, fmt.Sprintf("%d rows of %d", rows, columns), y, want)
			count += len(y)
		}
	}
	t.Logf("%d numbers", count)
}
