package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLoad lets 64 clients ask for songs of the built-in model, whole and streamed, for
// as long as SKALD_TEST_LOAD says, such as 1m. Nothing but songs and refusals may come of
// it, and probes must be answered at once.
func TestLoad(t *testing.T) {
	const clients, slowestProbe = 64, 50 * time.Millisecond
	length, err := time.ParseDuration(os.Getenv("SKALD_TEST_LOAD"))
	if err != nil {
		t.Skip("SKIPPED: the load test is left out; set SKALD_TEST_LOAD to a duration, such as 1m, to run it")
	}
	// As the command does.
	threads := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads + 4))
	s := openBuiltInOn(t, Config{}, threads)
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	end := time.Now().Add(length)

	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				body := fmt.Sprintf(`{"input":"la","prompt":"calm","steps":2,"seed":%d,"max_new_tokens":%d,"stream":%v,"response_format":%q}`,
					n, 1+(7*i+n)%60, n%2 == 0, []string{"wav", "flac", "pcm", "mp3"}[i%4])
				resp, err := http.Post(ts.URL+"/v1/audio/speech", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Error(err)
				}
				resp.Body.Close()
				mu.Lock()
				statuses[resp.StatusCode]++
				mu.Unlock()
				if resp.StatusCode != http.StatusOK {
					time.Sleep(200 * time.Millisecond) // less than Retry-After asks for
				}
			}
		})
	}
	var probes []time.Duration
	var early, late int64
	for time.Now().Before(end) {
		start := time.Now()
		resp, err := ts.Client().Get(ts.URL + "/healthz")
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("/healthz: %v, %v", resp, err)
		}
		resp.Body.Close()
		probes = append(probes, time.Since(start))
		if early == 0 && time.Until(end) < length*3/4 {
			early = heap()
		}
		time.Sleep(10 * time.Millisecond)
	}
	late = heap()
	all.Wait()
	slices.Sort(probes)
	p99 := probes[len(probes)*99/100]
	if p99 > slowestProbe {
		t.Errorf("p99 of /healthz is %v, more than %v", p99, slowestProbe)
	}
	for status := range statuses {
		if status != http.StatusOK && status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
	}
	t.Logf("%v: statuses %v; /healthz p50 %v, p99 %v of %d; memory %d MiB after a quarter, %d MiB at the end",
		length, statuses, probes[len(probes)/2], p99, len(probes), early>>20, late>>20)
}
