package cpu

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counting is a task that counts how often each chunk ran.
type counting struct {
	ran  []atomic.Int32
	work time.Duration
}

func (c *counting) chunk(i int, s *scratch) {
	grown(&s.a, 8)[i%8] = 1 // the race detector sees a scratch that is shared
	for t := time.Now(); time.Since(t) < c.work; {
	}
	c.ran[i].Add(1)
}

// TestPool: every chunk runs exactly once, with several callers, many sizes, and
// parked as well as spinning workers.
func TestPool(t *testing.T) {
	chunks := 0
	for threads := 1; threads <= 4; threads++ {
		p := newPool(threads, &kernels{})
		var group sync.WaitGroup
		var total atomic.Int64
		for caller := range 3 {
			group.Go(func() {
				j := p.newJob()
				for round := range 300 {
					n := (round*7 + caller) % 23
					c := counting{ran: make([]atomic.Int32, n)}
					if round%50 == 0 {
						c.work = 100 * time.Microsecond
						time.Sleep(time.Millisecond) // long enough for workers to park
					}
					p.run(j, &c, n, littleWork)
					total.Add(int64(n))
					for i := range c.ran {
						if got := c.ran[i].Load(); got != 1 {
							t.Errorf("%d threads: chunk %d of %d ran %d times", threads, i, n, got)
						}
					}
				}
			})
		}
		group.Wait()
		p.close()
		chunks += int(total.Load())
	}
	t.Logf("%d chunks", chunks)
}

// TestPoolHelps: all workers take part in a job that is long enough.
func TestPoolHelps(t *testing.T) {
	p := newPool(3, &kernels{})
	defer p.close()
	j := p.newJob()
	var mu sync.Mutex
	seen := map[*scratch]int{}
	p.run(j, taskFunc(func(_ int, s *scratch) {
		mu.Lock()
		seen[s]++
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}), 60, littleWork)
	if len(seen) != 3 || seen[&j.scratch] == 0 {
		t.Errorf("%d workers took part, the caller in %d of 60 chunks; want 3 and more than 0", len(seen), seen[&j.scratch])
	}
}

type taskFunc func(i int, s *scratch)

func (f taskFunc) chunk(i int, s *scratch) { f(i, s) }

// TestPoolLeavesLittle: a small job stays with its caller.
func TestPoolLeavesLittle(t *testing.T) {
	p := newPool(4, &kernels{})
	defer p.close()
	j := p.newJob()
	for range 100 {
		p.run(j, taskFunc(func(_ int, s *scratch) {
			if s != &j.scratch {
				t.Error("a worker took part")
			}
			time.Sleep(10 * time.Microsecond)
		}), 10, littleWork-1)
	}
}

// TestPoolEnds: closing leaves no goroutine, and idle workers use no processor time.
func TestPoolEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := newPool(4, &kernels{})
		p.run(p.newJob(), taskFunc(func(int, *scratch) {}), 8, littleWork)
		p.close()
	}
	after := runtime.NumGoroutine()
	for range 100 { // a goroutine that said it is done may still be on its last step
		if after <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
		after = runtime.NumGoroutine()
	}
	if after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
	p := newPool(4, &kernels{})
	defer p.close()
	p.run(p.newJob(), taskFunc(func(int, *scratch) {}), 8, littleWork)
	deadline := time.Now().Add(5 * time.Second)
	for parked := 0; parked < p.helpers; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d idle workers parked", parked, p.helpers)
		}
		time.Sleep(time.Millisecond)
		p.mu.Lock()
		parked = p.parked
		p.mu.Unlock()
	}
}

// TestPoolUnequal: a core that is slow, here one that stands still until all other chunks
// are done, holds up nothing but its own chunk.
func TestPoolUnequal(t *testing.T) {
	const chunks = 50
	for threads := 2; threads <= 4; threads++ {
		p := newPool(threads, &kernels{})
		var done atomic.Int32
		var rest sync.WaitGroup
		rest.Add(chunks - 1)
		var slow *scratch
		byOthers := 0
		var mu sync.Mutex
		p.run(p.newJob(), taskFunc(func(i int, s *scratch) {
			if i == 0 {
				slow = s
				rest.Wait() // for ever, if these chunks were the slow one's
				done.Add(1)
				return
			}
			mu.Lock()
			byOthers++
			mu.Unlock()
			done.Add(1)
			rest.Done()
		}), chunks, littleWork)
		if done.Load() != chunks || byOthers != chunks-1 || slow == nil {
			t.Errorf("%d threads: %d chunks done, %d by others", threads, done.Load(), byOthers)
		}
		p.close()
	}
}

// TestPackedByWorkers: the panels of a matrix are made, and so first written, by the
// workers that will read them.
func TestPackedByWorkers(t *testing.T) {
	if !slices.Contains(Levels(), string(levelAVX2)) {
		t.Skip("NOT EXAMINED: who makes panels: this machine's kernels read none")
	}
	k := machineKernels(levelAVX2)
	d := &device{kernels: k}
	// The first to come waits for a second.
	var came atomic.Int32
	second := make(chan struct{})
	pack := d.kernels.panels.packF32
	d.kernels.panels.packF32 = func(dst, src *float32, stride, blocks int) {
		switch came.Add(1) {
		case 1:
			select {
			case <-second:
			case <-time.After(time.Minute):
				t.Error("one worker makes all panels")
			}
		case 2:
			close(second)
		}
		pack(dst, src, stride, blocks)
	}
	d.pool = newPool(3, &d.kernels)
	defer d.pool.close()
	const rows, width = 40 * panelColumns, 4096
	w := &weight{shape: []int{rows, width}, floats: make([]float32, rows*width)}
	for i := range w.floats {
		w.floats[i] = float32(i % 977)
	}
	panels := d.packAll(w)
	for i := range rows {
		for _, j := range []int{0, 1, width - 1} {
			if got, want := panels[i/panelColumns*panelColumns*width+j*panelColumns+i%panelColumns], w.floats[i*width+j]; got != want {
				t.Fatalf("row %d, number %d: %v, want %v", i, j, got, want)
			}
		}
	}
}

// TestThreads: as many as Go may run, which counts a container's quota, unless told.
func TestThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for asked, want := range map[int]int{0: 3, 1: 1, 5: 5} {
		d, err := New(Options{Threads: asked})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Info().Threads; got != want || d.(*device).pool.helpers != want-1 {
			t.Errorf("%d threads asked for: %d, with %d helpers", asked, got, d.(*device).pool.helpers)
		}
		d.Close()
	}
}
