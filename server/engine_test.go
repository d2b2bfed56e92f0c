package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skald/host/engine"
)

// openBuiltIn serves the built-in model. The test closes both.
func openBuiltIn(t *testing.T, c Config) *Server { return openBuiltInOn(t, c, 0) }

func openBuiltInOn(t *testing.T, c Config, threads int) *Server {
	t.Helper()
	s, _ := newTestServer(t, c, nil)
	e, err := engine.Open(t.Context(), engine.Options{Threads: threads, Progress: s.SetLoading})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s.SetEngine(e)
	return s
}

func TestBuiltInModel(t *testing.T) {
	s := openBuiltIn(t, Config{})
	const song = `{"input":"[verse]\nla la","instructions":"calm","audio_duration":0.1,"seed":7%s}`
	wav := post(s, fmt.Sprintf(song, ""))
	// 0.1 s are 2.5 frames: 2 frames, 6 latents, 3,072 samples.
	if wav.Code != http.StatusOK {
		t.Fatalf("%d %s", wav.Code, wav.Body)
	}
	samples := decode(t, "wav", 44100, wav.Body.Bytes())
	if len(samples) != 12288 || wav.Body.Len() != 12332 || wav.Header().Get("Content-Length") != "12332" {
		t.Errorf("%d bytes of samples in %d, want 12288 in 12332", len(samples), wav.Body.Len())
	}
	h := wav.Header()
	for name, want := range map[string]string{
		"Content-Type": "audio/wav", "Skald-Seed": "7", "Skald-Frames": "2", "Skald-End-Reason": "length",
		"Skald-Sample-Rate": "44100",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if warnings := h.Values("Skald-Warning"); !slices.ContainsFunc(warnings, func(w string) bool {
		return strings.Contains(w, "demonstration model") && strings.Contains(w, "MiniMax-Music3")
	}) {
		t.Errorf("no warning that this is the demonstration model: %q", warnings)
	}
	for _, stage := range []string{"prompt", "ar", "flow", "vocoder", "encode"} {
		if timing := h.Get("Server-Timing"); !strings.Contains(timing, stage+";dur=") || strings.Contains(timing, stage+";dur=0.000") {
			t.Errorf("no time in stage %s: %s", stage, timing)
		}
	}

	again := post(s, fmt.Sprintf(song, ""))
	pcm := post(s, fmt.Sprintf(song, `,"response_format":"pcm"`))
	other := post(s, strings.Replace(fmt.Sprintf(song, ""), `"seed":7`, `"seed":8`, 1))
	if !bytes.Equal(again.Body.Bytes(), wav.Body.Bytes()) {
		t.Error("the same request gave another song")
	}
	if !bytes.Equal(pcm.Body.Bytes(), samples) {
		t.Error("pcm is not the samples of the wav")
	}
	if bytes.Equal(other.Body.Bytes(), wav.Body.Bytes()) {
		t.Error("another seed gave the same song")
	}
	if w := post(s, `{"instrumental":true,"prompt":"calm","duration":0.1}`); w.Code != http.StatusOK ||
		!strings.Contains(strings.Join(w.Header().Values("Skald-Warning"), "\n"), "instrumental") {
		t.Errorf("instrumental: %d, %v", w.Code, w.Header())
	}
}

func TestBuiltInModelRefuses(t *testing.T) {
	s := openBuiltIn(t, Config{})
	m, refusal := s.ready()
	if refusal != nil {
		t.Fatal(refusal)
	}
	info := m.Info()
	tests := []struct {
		body, pointer string
		parts         []string // of the message
	}{
		{fmt.Sprintf(`{"lyrics":%q,"prompt":"calm"}`, strings.Repeat("la ", info.MaxPromptTokens)),
			"/lyrics", []string{"tokens", fmt.Sprint(info.MaxPromptTokens)}},
		{fmt.Sprintf(`{"lyrics":"la","caption":%q}`, strings.Repeat("calm ", info.MaxPromptTokens)),
			"/caption", []string{"tokens", fmt.Sprint(info.MaxPromptTokens)}},
		{fmt.Sprintf(`{"lyrics":%q,"prompt":"calm","max_new_tokens":%d}`, strings.Repeat("la ", 2*(info.MaxPositions-info.MaxFrames)), info.MaxFrames),
			"/max_new_tokens", []string{"positions", fmt.Sprint(info.MaxFrames), fmt.Sprint(info.MaxPositions)}},
	}
	for _, tt := range tests {
		w := post(s, tt.body)
		e := wantError(t, w, http.StatusBadRequest, "invalid_value")
		if len(e.Error.Problems) != 1 || *e.Error.Problems[0].Pointer != tt.pointer {
			t.Errorf("%.60s: %+v, want %s", tt.body, e.Error, tt.pointer)
		}
		for _, part := range tt.parts {
			if !strings.Contains(e.Error.Message, part) {
				t.Errorf("%.60s: no %q in %q", tt.body, part, e.Error.Message)
			}
		}
	}
	t.Logf("%d bodies", len(tests))
}

// A client that leaves takes its song along, and the next song does not wait for it.
func TestBuiltInModelClientLeaves(t *testing.T) {
	s := openBuiltIn(t, Config{})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	const long = `{"input":"la","prompt":"calm","duration":360,"steps":200}`
	ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "POST", ts.URL+"/v1/audio/speech", strings.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the client got %v", err)
	}
	start := time.Now()
	if w := post(s, `{"input":"la","prompt":"calm","duration":0.04}`); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	t.Logf("the next song was there after %v", time.Since(start))
	s.waitPlaces(t, 0)
}

// Songs of different lengths, whole and streamed, made at once and more than there are
// places in the engine, are the songs that are made alone.
func TestBuiltInModelSongsTogether(t *testing.T) {
	s := openBuiltIn(t, Config{})
	body := func(i int, members string) string {
		return fmt.Sprintf(`{"input":"la","prompt":"calm","steps":1,"response_format":"pcm","max_new_tokens":%d,"seed":%d%s}`, 1+5*i%23, i, members)
	}
	const songs = 12
	var together, alone [songs][]byte
	var all sync.WaitGroup
	for i := range songs {
		all.Go(func() {
			w := post(s, body(i, []string{"", `,"stream":true`, `,"stream_format":"sse"`}[i%3]))
			together[i] = w.Body.Bytes()
			if i%3 == 2 {
				together[i], _ = joinDeltas(t, events(t, w.Body))
			}
		})
	}
	all.Wait()
	for i := range songs {
		alone[i] = post(s, body(i, "")).Body.Bytes()
		if len(alone[i]) < 4000 || !bytes.Equal(together[i], alone[i]) {
			t.Errorf("song %d: %d bytes, or others than the %d of the song alone", i, len(together[i]), len(alone[i]))
		}
	}
	t.Logf("%d songs, %d at once", songs, s.singer.Info().Songs)
}

func TestBuiltInModelHealth(t *testing.T) {
	s := openBuiltIn(t, Config{Aliases: []string{"tts-1"}})
	if v := decodeJSON(t, do(s, "GET", "/readyz", "").Body.Bytes()); v["status"] != "ready" {
		t.Errorf("/readyz: %v", v)
	}
	v := decodeJSON(t, do(s, "GET", "/v1/models/tts-1", "").Body.Bytes())
	if v["task"] != "music" || v["built_in"] != true || v["notice"] == nil || v["title"] == nil || v["sample_rate"] != 44100.0 {
		t.Errorf("the model is %v", v)
	}
}
