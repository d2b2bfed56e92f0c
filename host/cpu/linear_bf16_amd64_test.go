//go:build !noasm

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Twins of the instructions, as Intel's manual defines them. Other vendors may add in
// another order.

// tileDot adds steps of 32 terms: the products of even and of odd terms are summed
// apart.
func tileDot(x, w []float32) (sum float32) {
	for ; len(x) > 0; x, w = x[min(stepTerms, len(x)):], w[min(stepTerms, len(w)):] {
		var even, odd float32
		for i := range min(stepTerms, len(x)) {
			if i%2 == 0 {
				even = fma(x[i], w[i], even)
			} else {
				odd = fma(x[i], w[i], odd)
			}
		}
		sum += even + odd
	}
	return sum
}

// pairDot adds pairs of terms, the second of each first.
func pairDot(x, w []float32) (sum float32) {
	for i := 0; i < len(x); i += 2 {
		if i+1 < len(x) {
			sum = fma(x[i+1], w[i+1], sum)
		}
		sum = fma(x[i], w[i], sum)
	}
	return sum
}

// termsDot adds the sums of the three terms of each number of x.
func termsDot(x, w []float32) float32 {
	var terms [3][]float32
	for _, v := range x {
		for t := range terms {
			rounded := roundBF16(v)
			terms[t] = append(terms[t], rounded)
			v -= rounded
		}
	}
	return tileDot(terms[0], w) + (tileDot(terms[1], w) + tileDot(terms[2], w))
}

// bf16Kind is a way to compute Linear, and what it computes.
type bf16Kind struct {
	level level
	exact bool // x is float32
	twin  func(x, w []float32) float32
	run   func(q *queue, t *linearTask) // without rounding
}

// forBF16Linear runs f for each kind.
func forBF16Linear(t *testing.T, threads int, f func(t *testing.T, q *queue, k bf16Kind)) {
	available, _ := machineLevels()
	for name, k := range map[string]bf16Kind{
		"tiles": {levelAMX, false, tileDot, func(q *queue, t *linearTask) { q.bf16.(*amxLinear).run(q, t, 1, 0) }},
		"terms": {levelAMX, true, termsDot, func(q *queue, t *linearTask) { q.bf16.(*amxLinear).run(q, t, 3, 0) }},
		"pairs": {levelAVX512BF16, false, pairDot, func(q *queue, t *linearTask) { q.bf16.(*dotLinear).run(q, t, 0) }},
	} {
		l := k.level
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(available, l) {
				t.Skipf("NOT EXAMINED: all cases of %s: this machine lacks the level", t.Name())
			}
			d, err := New(Options{Threads: threads, Level: string(l)})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			d.(*device).pool.little = 0
			q, err := d.NewQueue()
			if err != nil {
				t.Fatal(err)
			}
			f(t, q.(*queue), k)
		})
	}
}

// bf16Case is a product of random numbers whose memory is guarded.
func bf16Case(t *testing.T, rows, k, n int, exact bool) *linearTask {
	task := &linearTask{x: guarded[float32](t, rows*k), rows: rows, k: k}
	for i := range task.x {
		task.x[i] = float32(rand.NormFloat64())
	}
	rounding(!exact).slice(task.x)
	w := &weight{shape: []int{n, k}, bits: guarded[uint16](t, n*k)}
	for i := range w.bits {
		w.bits[i] = bf16Bits(float32(rand.NormFloat64()))
	}
	task.products = append(task.products, product{y: guarded[float32](t, rows*n), stride: n, w: w, n: n})
	return task
}

// TestBF16Sums compares sums, before they are rounded, with the twins: to the bit on
// the processors whose manual they follow, elsewhere within what the order can change.
func TestBF16Sums(t *testing.T) {
	forBF16Linear(t, 2, func(t *testing.T, q *queue, kind bf16Kind) {
		cases, numbers := 0, 0
		check := func(rows, k, n int) {
			task := bf16Case(t, rows, k, n, kind.exact)
			p := &task.products[0]
			for _, packed := range []bool{false, true} {
				if packed {
					if q.pool.kernels.packPairs == nil {
						break
					}
					p.w.pairs = packAllPairs(p.w)
				}
				clear(p.y)
				kind.run(q, task)
				row := make([]float32, k)
				for c := range n {
					p.w.row(c, row, q.pool.kernels)
					for r := range rows {
						x := task.x[r*k : (r+1)*k]
						got, want := p.y[r*n+c], kind.twin(x, row)
						var room float64
						if !intel() {
							for i := range x {
								room += math.Abs(float64(x[i]*row[i])) * math.Sqrt(float64(k)) / (1 << 23)
							}
						}
						if !(math.Abs(float64(got-want)) <= room) {
							t.Fatalf("%d x %d x %d, result %d, %d is %v, want %v", rows, k, n, r, c, got, want)
						}
						numbers++
					}
				}
				cases++
			}
		}
		for _, rows := range []int{1, 2, 3, 4, 5, 8, 9, 13, 16, 17, 18, 29, 32, 33, 64, 65, 100} {
			for _, k := range []int{1, 2, 3, 31, 32, 33, 62, 64, 70, 256, 290} {
				check(rows, k, 1+rand.IntN(70))
			}
		}
		for _, n := range []int{1, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 130} {
			check(2, 50, n)
			check(7, 65, n)
			check(40, 66, n)
		}
		check(2, 4096, 33)
		check(65, 4100, 40)  // more than two groups of steps
		check(530, 2100, 20) // several parts of x
		t.Logf("%d cases, %d numbers", cases, numbers)
	})
}

// TestBF16Alone: one set of kernels for queues that work at once, while the garbage
// collector runs and moves goroutines between threads. All must get the same bits.
func TestBF16Alone(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	forBF16Linear(t, 3, func(t *testing.T, q *queue, kind bf16Kind) {
		duration := 2 * time.Second
		if testing.Short() {
			duration = 200 * time.Millisecond
		}
		tasks := []*linearTask{bf16Case(t, 2, 512, 300, kind.exact), bf16Case(t, 70, 320, 100, kind.exact), bf16Case(t, 1, 70, 33, kind.exact)}
		var want [][]float32
		for _, task := range tasks {
			kind.run(q, task)
			want = append(want, slices.Clone(task.products[0].y))
		}
		var stop atomic.Bool
		var calls atomic.Int64
		var all sync.WaitGroup
		before := new(runtime.MemStats)
		runtime.ReadMemStats(before)
		for range 4 {
			all.Go(func() {
				own := newQueue(q.pool)
				for !stop.Load() {
					for i, task := range tasks {
						mine := *task
						mine.products = slices.Clone(task.products)
						y := make([]float32, len(want[i])) // garbage, too
						mine.products[0].y = y
						kind.run(own, &mine)
						if !slices.Equal(y, want[i]) {
							t.Errorf("%d rows: another result", task.rows)
							return
						}
						calls.Add(1)
					}
				}
			})
		}
		all.Go(func() {
			for !stop.Load() {
				runtime.GC()
			}
		})
		time.Sleep(duration)
		stop.Store(true)
		all.Wait()
		after := new(runtime.MemStats)
		runtime.ReadMemStats(after)
		t.Logf("%d products, %d collections", calls.Load(), after.NumGC-before.NumGC)
	})
}

// TestFinishColumns compares with the other last step, for which there is a twin.
func TestFinishColumns(t *testing.T) {
	available, _ := machineLevels()
	if !slices.Contains(available, levelAMX) {
		t.Skipf("NOT EXAMINED: all cases of %s: this machine lacks the level amx", t.Name())
	}
	finishRows := machineKernels(levelAMX).panels.finish
	cases := 0
	for _, kind := range []struct {
		terms  int
		rows   []int
		finish func(*finish)
	}{{1, []int{1, 2, 15, 16}, finishColumns}, {3, []int{1, 2, 5}, finishTerms}} {
		for form := range 8 {
			for _, rows := range kind.rows {
				for columns := 1; columns <= 16; columns++ {
					stride := columns + 3
					sums := normals(256) // [column][16 rows]
					sums[0], sums[16], sums[1] = float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32
					turned := make([]float32, rows*16)
					for i := range turned {
						v := sums[i%16*16+i/16*kind.terms:][:kind.terms]
						turned[i] = v[0]
						if kind.terms == 3 {
							turned[i] = v[0] + (v[1] + v[2])
						}
					}
					y, bias, residual := guarded[float32](t, (rows-1)*stride+columns), guarded[float32](t, columns), guarded[float32](t, (rows-1)*stride+columns)
					copy(y, normals(len(y)))
					copy(bias, normals(len(bias)))
					copy(residual, normals(len(residual)))
					want := slices.Clone(y)
					f := finish{sums: &turned[0], sumsRow: 64, y: &want[0], yRow: 4 * stride, rows: rows, columns: columns, round: form&1 != 0}
					if form&2 != 0 {
						f.bias = &bias[0]
					}
					if form&4 != 0 {
						f.residual = &residual[0]
					}
					finishRows(&f)
					f.sums, f.y = &sums[0], &y[0]
					kind.finish(&f)
					for i := range want {
						if want[i] != want[i] && y[i] != y[i] { // all NaN are one
							want[i], y[i] = 0, 0
						}
					}
					same(t, fmt.Sprintf("%d terms, %d x %d, form %d", kind.terms, rows, columns, form), y, want)
					if columns == 16 {
						var buf []float32
						around := aligned(&buf, rows*16)
						f.y, f.yRow, f.residual, f.around = &around[0], 64, nil, true
						kind.finish(&f)
						written := slices.Clone(around)
						f.around = false
						kind.finish(&f)
						if fmt.Sprint(written) != fmt.Sprint(around) {
							t.Errorf("past the caches %v, want %v", written, around)
						}
					}
					cases++
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// TestTermsAccuracy: splitting float32 into terms loses nothing. Errors are counted in
// roundings of the sum of absolute products, which is mostly that of few of them. In
// 160000 results for each k the worst were 1.0, 2.0, 4.0, 7.8, 9.3 and 17.1; what is
// allowed follows how they are summed, two halves of a step and then the steps.
func TestTermsAccuracy(t *testing.T) {
	forBF16Linear(t, 2, func(t *testing.T, q *queue, kind bf16Kind) {
		if !kind.exact {
			t.Skip("for terms only")
		}
		worst, numbers := 0.0, 0
		for _, k := range []int{1, 2, 7, 64, 1000, 4096} {
			task := bf16Case(t, 40, k, 100, true)
			for i := range task.x {
				task.x[i] *= float32(math.Exp(4 * rand.NormFloat64()))
			}
			kind.run(q, task)
			p := &task.products[0]
			row := make([]float32, k)
			for c := range p.n {
				p.w.row(c, row, q.pool.kernels)
				for r := range task.rows {
					var sum, size float64
					for i, x := range task.x[r*k : (r+1)*k] {
						v := float64(x) * float64(row[i])
						sum, size = sum+v, size+math.Abs(v)
					}
					roundings := math.Abs(float64(p.y[r*p.n+c])-sum) / size * (1 << 24)
					worst = max(worst, roundings/(1.5+math.Sqrt(min(float64(k), 64))+math.Sqrt(float64(k)/32)))
					numbers++
				}
			}
		}
		if worst > 1 {
			t.Errorf("worst error %.2f of what is allowed", worst)
		}
		t.Logf("%d numbers, worst error %.2f of what is allowed", numbers, worst)
	})
}

// TestTall: very many rows give the bits that fewer give, which other tests compare
// with twins.
func TestTall(t *testing.T) {
	forBF16Linear(t, 2, func(t *testing.T, q *queue, kind bf16Kind) {
		a, ok := q.bf16.(*amxLinear)
		if !ok || kind.exact {
			t.Skip("for tiles only")
		}
		cases := 0
		for _, rows := range []int{tallRows, tallRows + 1, 2*tallRows + 37} {
			for _, k := range []int{1, 31, 32, 96, 97, 500, 512} {
				task := bf16Case(t, rows, k, 1+rand.IntN(100), false)
				task.round = true
				for _, n := range []int{1, 16, 17, 32, 33, 70} {
					more := bf16Case(t, rows, k, n, false).products[0]
					more.bias, more.residual = normals(n), normals(rows*n)
					task.products = append(task.products, more)
				}
				if !a.tall.suits(task) {
					t.Fatalf("%d rows of %d are not tall", rows, k)
				}
				a.run(q, task, 1, 0)
				var want [][]float32
				for _, p := range task.products {
					want = append(want, slices.Clone(p.y))
					clear(p.y)
				}
				a.linear(q, task, 0)
				for i, p := range task.products {
					same(t, fmt.Sprintf("%d x %d x %d", rows, k, p.n), p.y, want[i])
				}
				cases++
			}
		}
		t.Logf("%d cases", cases)
	})
}
