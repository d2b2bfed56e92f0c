package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"skald/host/engine"
)

// watched is an engine whose songs a test can look into.
type watched struct {
	*engine.Engine
	progress func(engine.Progress)
	sink     func()
	sung     func(ctx context.Context) // between the samples and the end of encoding
}

func (m *watched) Sing(ctx context.Context, r engine.Request) (*engine.Song, error) {
	progress, sink := r.Progress, r.Sink
	r.Progress = func(p engine.Progress) { progress(p); m.progress(p) }
	r.Sink = func(x [2][]float32) error { m.sink(); return sink(x) }
	song, err := m.Engine.Sing(ctx, r)
	if err == nil {
		m.sung(ctx)
	}
	return song, err
}

// TestDisconnectInEveryStage leaves a song in each stage of its making: the engine is
// idle soon, and the metrics tell where the client left.
func TestDisconnectInEveryStage(t *testing.T) {
	s := openBuiltIn(t, Config{})
	real, refusal := s.ready()
	if refusal != nil {
		t.Fatal(refusal)
	}
	e := real.(*engine.Engine)
	const long = `{"input":"la","prompt":"calm","duration":%d,"steps":%d,"stream":%v,"response_format":"mp3"}`
	in := func(stage engine.Stage) func(engine.Progress) bool {
		return func(p engine.Progress) bool { return p.Stage == stage && (stage != engine.StageAR || p.Frames > 3) }
	}
	never := func(engine.Progress) bool { return false }
	tests := []struct {
		name, body string
		counted    string // "" where two stages go on at once
		at         func(engine.Progress) bool
		sink, end  bool // leave while a window is encoded, or the song's end is
	}{
		{"prompt", fmt.Sprintf(long, 360, 30, false), "prompt", in(engine.StagePrompt), false, false},
		{"frame loop", fmt.Sprintf(long, 7, 30, false), "ar", in(engine.StageAR), false, false},
		{"flow", fmt.Sprintf(long, 4, 200, false), "flow", in(engine.StageFlow), false, false},
		{"vocoder", fmt.Sprintf(long, 4, 2, false), "vocoder", in(engine.StageVocoder), false, false},
		{"encoder, stream", fmt.Sprintf(long, 60, 2, true), "", never, true, false},
		{"encoder, end", fmt.Sprintf(long, 4, 2, false), "encode", never, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var left time.Time
			var once sync.Once
			gone := func() { once.Do(func() { left = time.Now(); leave() }) }
			s.setSinger(&watched{
				Engine: e,
				progress: func(p engine.Progress) {
					if tt.at(p) {
						gone()
					}
				},
				sink: func() {
					if tt.sink {
						gone()
					}
				},
				sung: func(ctx context.Context) {
					if tt.end {
						gone()
						<-ctx.Done()
					}
				},
			})
			before := scrape(t, s)
			leaves(t, s, ctx, tt.body)
			s.waitPlaces(t, 0)
			idle(t, e)
			took := time.Since(left)
			after, found := scrape(t, s), ""
			for name, v := range after {
				if stage, ok := strings.CutPrefix(name, `skald_client_disconnects_total{stage="`); ok && v != before[name] {
					found = strings.TrimSuffix(stage, `"}`)
				}
			}
			if found == "" || tt.counted != "" && found != tt.counted {
				t.Errorf("counted in stage %q, want %q", found, tt.counted)
			}
			t.Logf("idle %v after the client left, counted in stage %s", took.Round(time.Millisecond), found)
		})
	}

	t.Run("queue", func(t *testing.T) {
		s.setSinger(e)
		all, end := context.WithCancel(t.Context())
		defer end()
		var singing sync.WaitGroup
		for range e.Info().Songs {
			singing.Go(func() { leaves(t, s, all, fmt.Sprintf(long, 360, 200, false)) })
		}
		s.waitPlaces(t, e.Info().Songs)
		ctx, leave := context.WithCancel(t.Context())
		singing.Go(func() { leaves(t, s, ctx, fmt.Sprintf(long, 1, 1, false)) })
		for waiting := 0; waiting == 0; waiting, _ = e.Busy() {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		leave()
		for waiting := 1; waiting > 0; waiting, _ = e.Busy() {
			if time.Since(start) > soon {
				t.Fatalf("%d songs wait", waiting)
			}
			time.Sleep(time.Millisecond)
		}
		took := time.Since(start)
		s.waitPlaces(t, e.Info().Songs)
		if n := scrape(t, s)[`skald_client_disconnects_total{stage="queue"}`]; n != 1 {
			t.Errorf("%v are counted in the queue", n)
		}
		end()
		singing.Wait()
		idle(t, e)
		t.Logf("gone from the queue %v after the client left", took.Round(time.Millisecond))
	})
}

// leaves asks for a song whose client goes away when ctx ends.
func leaves(t *testing.T, s *Server, ctx context.Context, body string) {
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/audio/speech", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
	}()
	s.Handler().ServeHTTP(httptest.NewRecorder(), r)
}

// idle waits until the engine has nothing to do.
func idle(t *testing.T, e *engine.Engine) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		waiting, running := e.Busy()
		if waiting+running == 0 {
			return
		}
		if time.Since(start) > soon {
			t.Fatalf("%d songs wait, %d are made", waiting, running)
		}
	}
}

// TestFirstAudio streams a song of up to 30 s, which is when it ends itself: the samples of the whole song, and how long
// the first of them take.
func TestFirstAudio(t *testing.T) {
	s := openBuiltIn(t, Config{})
	real, refusal := s.ready()
	if refusal != nil {
		t.Fatal(refusal)
	}
	var sung, first int
	m := &watched{Engine: real.(*engine.Engine), sung: func(context.Context) {}}
	var mu sync.Mutex
	m.progress = func(p engine.Progress) { mu.Lock(); sung = max(sung, p.Frames); mu.Unlock() }
	m.sink = func() {
		mu.Lock()
		if first == 0 {
			first = sung
		}
		mu.Unlock()
	}
	s.setSinger(m)
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	const song = `{"input":"[intro] [verse] [chorus] [verse] [chorus] [outro]","prompt":"medium tempo, piano","duration":30,"seed":3,"response_format":%q,"stream":%v}`
	for _, format := range []string{"wav", "flac", "pcm"} {
		whole := post(s, fmt.Sprintf(song, format, false)).Body.Bytes()
		mu.Lock()
		sung, first = 0, 0
		mu.Unlock()
		start := time.Now()
		resp, err := http.Post(ts.URL+"/v1/audio/speech", "application/json", strings.NewReader(fmt.Sprintf(song, format, true)))
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1<<16)
		n, err := io.ReadAtLeast(resp.Body, buf, 4096)
		began := time.Since(start)
		rest, restErr := io.ReadAll(resp.Body)
		took := time.Since(start)
		resp.Body.Close()
		if err != nil || restErr != nil {
			t.Fatal(err, restErr)
		}
		streamed := append(buf[:n], rest...)
		if a, b := decode(t, format, 44100, whole), decode(t, format, 44100, streamed); len(a) < 1_000_000 || string(a) != string(b) {
			t.Errorf("%s: %d bytes of samples whole, %d streamed, or others", format, len(a), len(b))
		}
		if first < 201 || sung < 201 {
			t.Errorf("%s: first audio after %d of %d frames", format, first, sung)
		}
		t.Logf("%s: first audio after %.0f ms and %d of %d frames, %.0f %% of the %.0f ms for all", format,
			began.Seconds()*1000, first, sung, 100*began.Seconds()/took.Seconds(), took.Seconds()*1000)
	}
}
