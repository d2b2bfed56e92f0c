package bench

import (
	"context"
	"runtime"
	"time"
)

// others measures how many cores other processes take while f runs.
func others(f func()) float64 {
	m0, o0, ok := busy()
	start := time.Now()
	f()
	took := time.Since(start).Seconds()
	m1, o1, _ := busy()
	if !ok || took <= 0 {
		return 0
	}
	return max(0, ((m1-m0)-(o1-o0))/took)
}

// disturbs tells whether others took more cores than a measurement with that many
// threads leaves over.
func disturbs(cores float64, threads int) bool {
	return cores > float64(max(0, runtime.NumCPU()-threads))+0.15
}

// quiet waits until other processes leave the machine alone, at most for limit.
func quiet(ctx context.Context, threads int, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; {
		if !disturbs(others(func() { time.Sleep(300 * time.Millisecond) }), threads) {
			return
		}
	}
}

// measure times f: one run to warm up, then runs until there are enough undisturbed
// ones or the budget is spent. Disturbed runs count only when there are fewer than three
// others: one descheduled thread stalls a whole team.
func (o Options) measure(ctx context.Context, f func() error) (t timing, err error) {
	if err := f(); err != nil {
		return t, err
	}
	type run struct{ seconds, cores float64 }
	var calm, noisy []run
	for start := time.Now(); len(calm) < o.Runs; {
		if err := ctx.Err(); err != nil {
			return t, context.Cause(ctx)
		}
		if len(calm)+len(noisy) >= min(3, o.Runs) && time.Since(start) > o.Budget {
			break
		}
		var group []float64
		cores := others(func() {
			for begin := time.Now(); err == nil && time.Since(begin) < 200*time.Millisecond; {
				at := time.Now()
				err = f()
				group = append(group, time.Since(at).Seconds())
			}
		})
		if err != nil {
			return t, err
		}
		list := &calm
		if disturbs(cores, o.Threads) {
			list = &noisy
		}
		for _, s := range group {
			*list = append(*list, run{s, cores})
		}
		if list == &noisy {
			quiet(ctx, o.Threads, o.Budget/10)
		}
	}
	if len(calm) < min(3, o.Runs) {
		calm, t.disturbed = append(calm, noisy...), true
	}
	for _, r := range calm {
		t.seconds = append(t.seconds, r.seconds)
		t.otherCores += r.cores / float64(len(calm))
	}
	t.disturbed = t.disturbed && disturbs(t.otherCores, o.Threads)
	return t, nil
}
