package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skald/host/engine"
)

// A model that nobody uses is unloaded; the next song loads it again and is the same.
func TestIdleUnload(t *testing.T) {
	const song = `{"input":"la","prompt":"calm","max_new_tokens":3,"steps":1}`
	var opened atomic.Int32
	var fail atomic.Bool
	var gate sync.Mutex // held: opening takes its time
	open := func(ctx context.Context) (*engine.Engine, error) {
		opened.Add(1)
		gate.Lock()
		defer gate.Unlock()
		if fail.Load() {
			return nil, errors.New("the disk is gone")
		}
		return engine.Open(ctx, engine.Options{})
	}
	s, _ := newTestServer(t, Config{IdleUnload: 20 * time.Millisecond, Open: open}, nil)
	e, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	defer s.closeResting()
	unloaded := func() {
		t.Helper()
		for start := time.Now(); scrape(t, s)["skald_model_loaded"] != 0; time.Sleep(time.Millisecond) {
			if time.Since(start) > soon {
				t.Fatal("the model stays loaded")
			}
		}
	}
	first := post(s, song)
	if first.Code != http.StatusOK {
		t.Fatalf("%d %s", first.Code, first.Body)
	}
	unloaded()
	for _, path := range []string{"/readyz", "/healthz", "/v1/models", "/openapi.json"} {
		if w := do(s, "GET", path, ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	before := opened.Load()
	again := post(s, song)
	if again.Code != http.StatusOK || !bytes.Equal(again.Body.Bytes(), first.Body.Bytes()) {
		t.Errorf("after the rest: %d, %d bytes, or others than %d", again.Code, again.Body.Len(), first.Body.Len())
	}
	if opened.Load() != before+1 {
		t.Errorf("opened %d times for one song", opened.Load()-before)
	}

	// Those who come while it is opened wait for the same opening, and one may leave.
	unloaded()
	before = opened.Load()
	gate.Lock()
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { leaves(t, s, ctx, song) })
	for range 3 {
		all.Go(func() {
			if w := post(s, song); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), first.Body.Bytes()) {
				t.Errorf("one of many: %d", w.Code)
			}
		})
	}
	for opened.Load() == before {
		time.Sleep(time.Millisecond)
	}
	leave()
	gate.Unlock()
	all.Wait()

	unloaded()
	fail.Store(true)
	e2 := wantError(t, post(s, song), http.StatusServiceUnavailable, "model_unavailable")
	if !strings.Contains(e2.Error.Message, "the disk is gone") {
		t.Errorf("message %q", e2.Error.Message)
	}
	fail.Store(false)
	if w := post(s, song); w.Code != http.StatusOK {
		t.Errorf("after a failure: %d %s", w.Code, w.Body)
	}
	s.closeResting()
	if w := post(s, song); w.Code != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d", w.Code)
	}
	t.Logf("opened %d times", opened.Load())
}
