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

// tileDot adds steps of 32 terms: the products of even and of odd terms are summed apart.
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

// forBF16Linear runs f for the levels that have a bf16Linear of their own.
func forBF16Linear(t *testing.T, threads int, f func(t *testing.T, q *queue, twin func(x, w []float32) float32)) {
	available, _ := machineLevels()
	for l, twin := range map[level]func(x, w []float32) float32{levelAMX: tileDot, levelAVX512BF16: pairDot} {
		t.Run(string(l), func(t *testing.T) {
			if !slices.Contains(available, l) {
				t.Skip("NOT EXAMINED: this machine lacks the level")
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
			f(t, q.(*queue), twin)
		})
	}
}

// bf16Case is a product of random numbers whose memory is guarded.
func bf16Case(t *testing.T, rows, k, n int) *linearTask {
	task := &linearTask{x: guarded[float32](t, rows*k), rows: rows, k: k}
	for i := range task.x {
		task.x[i] = roundBF16(float32(rand.NormFloat64()))
	}
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
	forBF16Linear(t, 2, func(t *testing.T, q *queue, twin func(x, w []float32) float32) {
		cases, numbers := 0, 0
		check := func(rows, k, n int) {
			task := bf16Case(t, rows, k, n)
			p := &task.products[0]
			for _, packed := range []bool{false, true} {
				if packed {
					if q.pool.kernels.packPairs == nil {
						break
					}
					p.w.pairs = packAllPairs(p.w)
				}
				clear(p.y)
				q.bf16.linear(q, task, 0)
				row := make([]float32, k)
				for c := range n {
					p.w.row(c, row, q.pool.kernels)
					for r := range rows {
						x := task.x[r*k : (r+1)*k]
						got, want := p.y[r*n+c], twin(x, row)
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
	forBF16Linear(t, 3, func(t *testing.T, q *queue, _ func(x, w []float32) float32) {
		duration := 2 * time.Second
		if testing.Short() {
			duration = 200 * time.Millisecond
		}
		tasks := []*linearTask{bf16Case(t, 2, 512, 300), bf16Case(t, 40, 320, 100), bf16Case(t, 1, 70, 33)}
		var want [][]float32
		for _, task := range tasks {
			q.bf16.linear(q, task, 0)
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
						own.bf16.linear(own, &mine, 0)
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
	forBF16Linear(t, 1, func(t *testing.T, q *queue, _ func(x, w []float32) float32) {
		cases := 0
		for form := range 8 {
			for _, rows := range []int{1, 2, 15, 16} {
				for columns := 1; columns <= 16; columns++ {
					stride := columns + 3
					sums := normals(256)
					sums[0], sums[16], sums[1] = float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32
					turned := make([]float32, 256)
					for i, v := range sums {
						turned[i%16*16+i/16] = v
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
					q.pool.kernels.panels.finish(&f)
					f.sums, f.y = &sums[0], &y[0]
					finishColumns(&f)
					for i := range want {
						if want[i] != want[i] && y[i] != y[i] { // all NaN are one
							want[i], y[i] = 0, 0
						}
					}
					same(t, fmt.Sprintf("%d x %d, form %d", rows, columns, form), y, want)
					if columns == 16 {
						var buf []float32
						around := aligned(&buf, rows*16)
						f.y, f.yRow, f.residual, f.around = &around[0], 64, nil, true
						finishColumns(&f)
						written := slices.Clone(around)
						f.around = false
						finishColumns(&f)
						if fmt.Sprint(written) != fmt.Sprint(around) {
							t.Errorf("past the caches %v, want %v", written, around)
						}
					}
					cases++
				}
			}
		}
		t.Logf("%d cases", cases)
	})
}
