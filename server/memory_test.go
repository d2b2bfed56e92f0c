package server

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
)

// TestMemoryOverManySongs makes 500 songs of different lengths and formats, four at a
// time: the memory after all of them is that after the first ones.
func TestMemoryOverManySongs(t *testing.T) {
	songs, warm := 500, 60
	if testing.Short() {
		songs = 120
	}
	s := openBuiltIn(t, Config{})
	song := func(i int) {
		w := post(s, fmt.Sprintf(`{"input":"la","prompt":"calm","steps":1,"seed":%d,"max_new_tokens":%d,"stream":%v,"response_format":%q}`,
			i, 1+7*i%50, i%2 == 0, []string{"wav", "flac", "mp3", "opus", "pcm"}[i%5]))
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
	memory, goroutines := heap(), runtime.NumGoroutine()
	many(warm, songs)
	grown := heap() - memory
	t.Logf("%d songs: %.2f MiB more than after %d, %.1f MiB then; goroutines %d, %d",
		songs, float64(grown)/(1<<20), warm, float64(memory)/(1<<20), goroutines, runtime.NumGoroutine())
	if grown > 4<<20 { // 10 KB a song would be kept
		t.Errorf("%d bytes of memory are left of %d songs", grown, songs-warm)
	}
	if runtime.NumGoroutine() > goroutines+2 {
		t.Errorf("%d goroutines after %d songs, %d after all", goroutines, warm, runtime.NumGoroutine())
	}
}
