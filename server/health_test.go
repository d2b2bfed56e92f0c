package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"skald/host/engine"
)

func decodeJSON(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}

func TestReadiness(t *testing.T) {
	s, _ := newTestServer(t, Config{}, nil)
	expect := func(status int, want map[string]any) {
		t.Helper()
		w := do(s, "GET", "/readyz", "")
		if got := decodeJSON(t, w.Body.Bytes()); w.Code != status || !reflect.DeepEqual(got, want) {
			t.Errorf("got %d %v, want %d %v", w.Code, got, status, want)
		}
		if w := do(s, "GET", "/healthz", ""); w.Code != http.StatusOK {
			t.Errorf("/healthz: %d", w.Code)
		}
	}
	expect(503, map[string]any{"status": "loading", "stage": "starting", "percent": 0.0, "bytes_per_second": 0.0})
	s.SetLoading(engine.LoadProgress{Component: "transformer", Bytes: 25, Total: 200, BytesPerSecond: 12.5})
	expect(503, map[string]any{"status": "loading", "stage": "transformer", "percent": 12.5,
		"bytes": 25.0, "total_bytes": 200.0, "bytes_per_second": 12.5})
	e := wantError(t, post(s, validBody), 503, "model_loading")
	if want := "the model is being loaded: transformer, 12 %; try again soon"; e.Error.Message != want {
		t.Errorf("message %q, want %q", e.Error.Message, want)
	}
	wantError(t, do(s, "GET", "/v1/models", ""), 503, "model_loading")
	wantError(t, do(s, "GET", "/v1/models/song/model", ""), 503, "model_loading")

	s.setSinger(&fakeSinger{})
	expect(200, map[string]any{"status": "ready", "model": "song/model"})
	s.drain()
	expect(503, map[string]any{"status": "draining"})
	wantError(t, post(s, validBody), 503, "draining")
}

func TestStalledSong(t *testing.T) {
	began, end := make(chan struct{}, 1), make(chan struct{})
	m := &fakeSinger{song: waitSong(began, end)}
	m.progress = time.Now().Add(-time.Hour) // of an earlier song
	s, _ := newTestServer(t, Config{StallAfter: 200 * time.Millisecond}, m)
	status := func() int { return do(s, "GET", "/healthz", "").Code }

	if got := status(); got != 200 {
		t.Errorf("without a song: %d", got)
	}
	done := make(chan struct{}, 2)
	sing := func() {
		go func() {
			post(s, validBody)
			done <- struct{}{}
		}()
		receive(t, began, "song")
	}
	sing()
	if got := status(); got != 200 {
		t.Errorf("just begun: %d", got)
	}
	time.Sleep(300 * time.Millisecond)
	if got := status(); got != 503 {
		t.Errorf("without progress: %d", got)
	}
	sing() // more songs do not excuse it
	if got := status(); got != 503 {
		t.Errorf("without progress, with a second song: %d", got)
	}
	m.mu.Lock()
	m.progress = time.Now()
	m.mu.Unlock()
	if got := status(); got != 200 {
		t.Errorf("after progress: %d", got)
	}
	close(end)
	receive(t, done, "reply")
	receive(t, done, "reply")
	time.Sleep(300 * time.Millisecond)
	if got := status(); got != 200 {
		t.Errorf("after the song: %d", got)
	}
	// The time in which there was no song does not count.
	m.song = waitSong(began, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/audio/speech", strings.NewReader(validBody))
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		done <- struct{}{}
	}()
	receive(t, began, "song")
	if got := status(); got != 200 {
		t.Errorf("a new song: %d", got)
	}
	cancel()
	receive(t, done, "reply")
}

func TestModels(t *testing.T) {
	s, _ := newTestServer(t, Config{Aliases: []string{"tts-1"}, Instructions: "house style"}, &fakeSinger{})
	var list struct {
		Object string           `json:"object"`
		Data   []map[string]any `json:"data"`
	}
	if err := json.Unmarshal(do(s, "GET", "/v1/models", "").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if list.Object != "list" || len(list.Data) != 1 {
		t.Fatalf("got %+v", list)
	}
	got := list.Data[0]
	if created, _ := got["created"].(float64); created < 1.7e9 {
		t.Errorf("created is %v", got["created"])
	}
	delete(got, "created")
	want := map[string]any{
		"id": "song/model", "object": "model", "owned_by": "skald", "task": "music",
		"aliases": []any{"tts-1"}, "title": "A Model", "notice": "made by machine", "built_in": false,
		"device": "cpu", "precision": "fp32", "sample_rate": 44100.0, "channels": 2.0, "frame_rate": 25.0,
		"response_formats": []any{"wav", "flac", "mp3", "opus", "pcm"},
		"limits": map[string]any{"min_audio_duration": 0.04, "max_audio_duration": 360.0, "max_new_tokens": 9000.0,
			"max_prompt_tokens": 5000.0, "max_positions": 10240.0, "max_body_bytes": 1048576.0},
		"defaults": map[string]any{"audio_duration": 60.0, "instructions": "house style", "seed": 0.0,
			"num_inference_steps": 30.0, "guidance_scale": 1.7, "prompt_mode": "friendly"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
	for _, path := range []string{"/v1/models/song/model", "/v1/models/song%2Fmodel", "/v1/models/tts-1"} {
		w := do(s, "GET", path, "")
		if v := decodeJSON(t, w.Body.Bytes()); w.Code != 200 || v["id"] != "song/model" {
			t.Errorf("%s: %d %v", path, w.Code, v)
		}
	}
	for _, path := range []string{"/v1/models/other", "/v1/models/", "/v1/models/song", "/v1/models/%ff"} {
		wantError(t, do(s, "GET", path, ""), 404, "model_not_found")
	}
	wantError(t, do(s, "DELETE", "/v1/models/tts-1", ""), 405, "method_not_allowed")
	if w := do(s, "HEAD", "/v1/models", ""); w.Code != 200 {
		t.Errorf("HEAD: %d", w.Code)
	}
}

// The engine itself is what the server takes.
var _ singer = (*engine.Engine)(nil)

// A song's context is the request's.
func TestSongContext(t *testing.T) {
	type key struct{}
	m := &fakeSinger{song: func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		if ctx.Value(key{}) != "value" {
			t.Error("the song does not run under the request's context")
		}
		return testSong(r), nil
	}}
	s, _ := newTestServer(t, Config{}, m)
	if _, err := s.sing(context.WithValue(t.Context(), key{}, "value"), m, engine.Request{Sink: func([2][]float32) error { return nil }}); err != nil {
		t.Error(err)
	}
}
