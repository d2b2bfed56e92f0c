package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"skald/host/compute"
	"skald/host/engine"
)

// fakeSinger stands for an engine: tests say what Sing does.
type fakeSinger struct {
	song  func(context.Context, engine.Request) (*engine.Song, error)
	check func(engine.Request) ([]string, error)

	songs int // made at once; 0: 1

	mu       sync.Mutex
	running  int
	progress time.Time
}

func (f *fakeSinger) Info() engine.Info {
	return engine.Info{
		Name: "song/model", Title: "A Model", Notice: "made by machine",
		Precision: "fp32", Device: "cpu", SampleRate: 44100, FrameRate: 25, Songs: max(f.songs, 1),
		MaxFrames: 9000, MaxPromptTokens: 5000, MaxPositions: 10240,
	}
}

func (f *fakeSinger) Defaults() engine.Request {
	return engine.Request{MaxFrames: 1500, Steps: 30, Guidance: 1.7, PromptMode: engine.Friendly, RNG: engine.Philox}
}

func (f *fakeSinger) Check(r engine.Request) ([]string, error) {
	if f.check == nil {
		return nil, nil
	}
	return f.check(r)
}

func (f *fakeSinger) PromptTokens(r engine.Request) (int, error) { return 7 + len(r.Lyrics), nil }

func (f *fakeSinger) Sing(ctx context.Context, r engine.Request) (*engine.Song, error) {
	f.mu.Lock()
	f.running++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running--
		f.mu.Unlock()
	}()
	song := testSong(r)
	if f.song != nil {
		var err error
		if song, err = f.song(ctx, r); err != nil {
			return nil, err
		}
	}
	// In two pieces of unequal length, as from windows.
	var err error
	cut := len(song.Samples[0]) / 3
	for _, piece := range [][2][]float32{
		{song.Samples[0][:cut], song.Samples[1][:cut]}, {song.Samples[0][cut:], song.Samples[1][cut:]},
	} {
		if err == nil {
			err = r.Sink(piece)
		}
	}
	song.Samples = [2][]float32{}
	return song, err
}

func (f *fakeSinger) Busy() (waiting, running int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 0, f.running
}

func (f *fakeSinger) Usage() engine.Usage {
	return engine.Usage{KVBlocks: 9, KVBlocksTaken: 3, Memory: compute.MemoryInfo{Total: 2000, Free: 500}}
}

func (f *fakeSinger) LastProgress() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress
}

// testSong has 3,072 samples per channel: three latents of the published model, one
// frame's worth.
func testSong(r engine.Request) *engine.Song {
	s := &engine.Song{
		SampleRate: 44100, Seed: r.Seed, Frames: r.MaxFrames, EndReason: engine.EndLength,
		Warnings: []string{"one\nline", "zwei Töne 🎵"},
		Timings: []engine.Timing{
			{Stage: engine.StageQueue, Duration: 250 * time.Microsecond},
			{Stage: engine.StageAR, Duration: 1500 * time.Millisecond},
		},
	}
	for c := range s.Samples {
		s.Samples[c] = make([]float32, 3072)
		for i := range s.Samples[c] {
			s.Samples[c][i] = float32(i%7-3) / float32(3+c)
		}
	}
	return s
}

// waitSong returns a song function that says when it began and goes on until the test
// lets it end or its context does.
func waitSong(began chan<- struct{}, end <-chan struct{}) func(context.Context, engine.Request) (*engine.Song, error) {
	return func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		began <- struct{}{}
		select {
		case <-end:
			return testSong(r), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// newTestServer makes a server with a model; nil leaves it loading. The buffer takes the
// log, at debug level.
func newTestServer(t *testing.T, c Config, m singer) (*Server, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if m != nil {
		s.setSinger(m)
	}
	return s, log
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

const validBody = `{"input":"[verse]\nla","instructions":"folk","max_new_tokens":1,"seed":18446744073709551615}`

// do sends a request without a network; header holds names and values in turn.
func do(s *Server, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func post(s *Server, body string, header ...string) *httptest.ResponseRecorder {
	return do(s, http.MethodPost, "/v1/audio/speech", body, append([]string{"Content-Type", "application/json"}, header...)...)
}

type errorObject struct {
	Error struct {
		Message  string  `json:"message"`
		Type     string  `json:"type"`
		Param    *string `json:"param"`
		Code     string  `json:"code"`
		Problems []struct {
			Pointer    *string `json:"pointer"`
			Message    string  `json:"message"`
			Code       string  `json:"code"`
			Suggestion string  `json:"suggestion"`
		} `json:"problems"`
	} `json:"error"`
}

// decodeError checks that a reply is a whole error object, and returns it.
func decodeError(t *testing.T, r io.Reader, header http.Header) errorObject {
	t.Helper()
	var e errorObject
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		t.Fatalf("not an error object: %v", err)
	}
	switch {
	case e.Error.Message == "" || e.Error.Type == "" || e.Error.Code == "" || e.Error.Problems == nil:
		t.Errorf("error object lacks a part: %+v", e.Error)
	case header.Get("Content-Type") != "application/json" || header.Get("X-Request-Id") == "":
		t.Errorf("error has headers %v", header)
	}
	for _, p := range e.Error.Problems {
		if p.Pointer == nil || p.Message == "" || p.Code == "" {
			t.Errorf("problem lacks a part: %+v", p)
		}
	}
	return e
}

// wantError checks status and code of a refusal.
func wantError(t *testing.T, w *httptest.ResponseRecorder, status int, code string) errorObject {
	t.Helper()
	e := decodeError(t, w.Body, w.Header())
	if w.Code != status || e.Error.Code != code {
		t.Errorf("got %d %s (%s), want %d %s", w.Code, e.Error.Code, e.Error.Message, status, code)
	}
	return e
}
