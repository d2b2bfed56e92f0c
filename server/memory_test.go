package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// live is the memory of what is reachable.
func live() int64 {
	runtime.GC()
	runtime.GC() // pools keep what they have for one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestMemoryOverManySongs makes 500 songs of different lengths and formats, four at a
// time: the memory after all of them is that after the first ones.
func TestMemoryOverManySongs(t *testing.T) {
	songs, warm := 500, 60
	if testing.Short() {
		songs = 120
	}
	s := openBuiltIn(t, Config{})
	s.log = slog.New(slog.DiscardHandler) // the tests' own keeps every line
	song := func(i int) {
		w := post(s, fmt.Sprintf(`{"input":"la","prompt":"calm","steps":1,"seed":%d,"max_new_tokens":%d,"stream":%v,"response_format":%q}`,
			i, 1+i%5, i%2 == 0, []string{"wav", "flac", "mp3", "opus", "pcm"}[i%5]))
		if w.Code != http.StatusOK {
			t.Errorf("song %d: %d %s", i, w.Code, w.Body)
		}
	}
	many := func(from, to int) {
		var all sync.WaitGroup
		next := make(chan int)
		for range 4 {
			all.Go(func() {
				for i := range next {
					song(i)
				}
			})
		}
		for i := from; i < to; i++ {
			next <- i
		}
		close(next)
		all.Wait()
	}
	many(0, warm)
	memory, goroutines := live(), runtime.NumGoroutine()
	figures := []string{}
	for from := warm; from < songs; from += warm {
		many(from, min(from+warm, songs))
		figures = append(figures, fmt.Sprintf("%+.2f", float64(live()-memory)/(1<<20)))
	}
	t.Logf("%d songs: %.1f MiB after the first %d, then %s MiB; goroutines %d, %d",
		songs, float64(memory)/(1<<20), warm, strings.Join(figures, " "), goroutines, runtime.NumGoroutine())
	if grown := live() - memory; grown > 400<<10 { // 1 KB of each song would be kept
		t.Errorf("%d bytes of memory are left of %d songs", grown, songs-warm)
	}
	if runtime.NumGoroutine() > goroutines+2 {
		t.Errorf("%d goroutines after %d songs, %d after all", goroutines, warm, runtime.NumGoroutine())
	}
}
