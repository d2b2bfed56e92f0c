// Package peak measures how fast the cores can multiply and add at all, so that a
// benchmark can say what share of that it reaches.
package peak

import (
	"sync"
	"time"
)

// Of returns the rate of a loop in operations a second, run on as many threads at
// once for about a millisecond each time; the best of several times counts, for
// what disturbs only makes it slower. A turn does perTurn operations.
func Of(loop func(turns int), perTurn float64, threads int) float64 {
	const turns, times = 50_000, 10
	best := 0.0
	for range times {
		var all sync.WaitGroup
		start := time.Now()
		for range threads {
			all.Go(func() { loop(turns) })
		}
		all.Wait()
		best = max(best, perTurn*turns*float64(threads)/time.Since(start).Seconds())
	}
	return best
}
