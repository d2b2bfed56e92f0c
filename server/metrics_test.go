package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"skald/host/engine"
)

// scrape reads /metrics: values by name and labels.
func scrape(t *testing.T, s *Server, header ...string) map[string]float64 {
	t.Helper()
	w := do(s, "GET", "/metrics", "", header...)
	if w.Code != http.StatusOK {
		t.Fatalf("/metrics: %d %s", w.Code, w.Body)
	}
	values := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		if i := strings.LastIndex(line, " "); !strings.HasPrefix(line, "#") {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
			if err != nil {
				t.Fatal(err)
			}
			values[line[:i]] = v
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	m := &fakeSinger{songs: 2, song: func(_ context.Context, r engine.Request) (*engine.Song, error) {
		r.Progress(engine.Progress{Stage: engine.StageAR, Frames: 3})
		r.Progress(engine.Progress{Stage: engine.StageAR, Frames: 5})
		r.Progress(engine.Progress{Stage: engine.StageVocoder, Frames: 4}) // late
		if r.Seed == 1 {
			return nil, &engine.NumericError{Stage: engine.StageVocoder, What: "NaN"}
		}
		return testSong(r), nil
	}}
	s, _ := newTestServer(t, Config{Version: "v1.2.3", APIKeys: []string{"k"}, MaxQueue: 7}, m)
	key := []string{"Authorization", "Bearer k"}
	post(s, validBody, key...)
	post(s, with(`"stream":true`), key...)
	post(s, strings.Replace(validBody, "18446744073709551615", "1", 1), key...)
	post(s, "{}", key...)
	post(s, "{}")
	do(s, "GET", "/secret", "")

	got := scrape(t, s, key...)
	seconds := 3072. / 44100
	for name, want := range map[string]float64{
		`skald_ready`: 1,
		`skald_model_info{device="cpu",model="song/model",precision="fp32"}`:        1,
		`skald_build_info{version="v1.2.3"}`:                                        1,
		`skald_songs{state="waiting"}`:                                              0,
		`skald_songs{state="singing"}`:                                              0,
		`skald_songs{state="sending"}`:                                              0,
		`skald_song_places`:                                                         9,
		`skald_last_progress_timestamp_seconds`:                                     0,
		`skald_kv_blocks{state="taken"}`:                                            3,
		`skald_kv_blocks{state="free"}`:                                             6,
		`skald_device_memory_size_bytes`:                                            2000,
		`skald_device_memory_free_bytes`:                                            500,
		`skald_frames_total`:                                                        15,
		`skald_audio_seconds_total`:                                                 2 * seconds,
		`skald_songs_total{result="sung"}`:                                          2,
		`skald_songs_total{result="failed"}`:                                        1,
		`skald_songs_total{result="abandoned"}`:                                     0,
		`skald_song_real_time_factor_count`:                                         2,
		`skald_stream_first_audio_seconds_count`:                                    1,
		`skald_song_stage_duration_seconds_count{stage="ar"}`:                       2,
		`skald_song_stage_duration_seconds_sum{stage="ar"}`:                         3,
		`skald_song_stage_duration_seconds_count{stage="encode"}`:                   2,
		`skald_errors_total{code="numeric_failure"}`:                                1,
		`skald_errors_total{code="missing_required_parameter"}`:                     1,
		`skald_errors_total{code="invalid_api_key"}`:                                1,
		`skald_errors_total{code="not_found"}`:                                      1,
		`skald_client_disconnects_total{stage="queue"}`:                             0,
		`skald_request_duration_seconds_count{code="200",route="/v1/audio/speech"}`: 2,
		`skald_request_duration_seconds_count{code="404",route="other"}`:            1,
	} {
		if v, ok := got[name]; !ok || v < want-1e-9 || v > want+1e-9 {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	if got["go_goroutines"] == 0 {
		t.Error("nothing about the process")
	}
	wantError(t, do(s, "GET", "/metrics", ""), http.StatusUnauthorized, "invalid_api_key")
	if again := scrape(t, s, key...); len(again) < len(got) {
		t.Errorf("%d series, then %d", len(got), len(again))
	}
	t.Logf("%d series", len(got))
}

func TestMetricsWhileLoading(t *testing.T) {
	s, _ := newTestServer(t, Config{}, nil)
	if got := scrape(t, s); got["skald_ready"] != 0 || len(got) < 50 {
		t.Errorf("%d series, ready %v", len(got), got["skald_ready"])
	}
}

// TestMetricNames holds all names against the rules of Prometheus.
func TestMetricNames(t *testing.T) {
	s := openBuiltIn(t, Config{})
	post(s, `{"input":"la","prompt":"calm","duration":0.04,"steps":1}`)
	post(s, "{}")
	problems, err := promlint.New(do(s, "GET", "/metrics", "").Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	got := scrape(t, s)
	for _, name := range []string{
		"skald_frames_total", `skald_kv_blocks{state="free"}`, "skald_device_memory_size_bytes", "skald_last_progress_timestamp_seconds",
	} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

// Every disconnect is counted under what was being done.
func TestDisconnectsAreCounted(t *testing.T) {
	stages := []engine.Stage{engine.StageQueue, engine.StagePrompt, engine.StageAR, engine.StageFlow, engine.StageVocoder, engine.StageEncode}
	var stage engine.Stage
	began := make(chan struct{}, 1)
	m := &fakeSinger{song: func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		if stage != engine.StageQueue && stage != engine.StageEncode {
			r.Progress(engine.Progress{Stage: stage})
		}
		began <- struct{}{}
		<-ctx.Done()
		if stage == engine.StageEncode {
			return testSong(r), nil // it was done just then
		}
		return nil, context.Cause(ctx)
	}}
	s, _ := newTestServer(t, Config{}, m)
	for _, stage = range stages {
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			<-began
			leave()
		}()
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/audio/speech", strings.NewReader(validBody))
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	// Slow readers of a reply and of a stream; see TestSlowReader and TestSlowListener.
	m.song = func(_ context.Context, r engine.Request) (*engine.Song, error) {
		song := testSong(r)
		for c := range song.Samples {
			song.Samples[c] = make([]float32, 8<<20)
		}
		return song, nil
	}
	s.patience.reply, s.patience.rate = 100*time.Millisecond, 1<<30
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	for _, body := range []string{validBody, with(`"stream":true`)} {
		if _, err := connect(t, ts, len(body)).Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		s.waitPlaces(t, 1)
		s.waitPlaces(t, 0)
	}
	got := scrape(t, s)
	for _, stage := range stages {
		if name := fmt.Sprintf("skald_client_disconnects_total{stage=%q}", stage); got[name] != 1 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if got[`skald_client_disconnects_total{stage="reply"}`] != 2 || got[`skald_songs_total{result="abandoned"}`] != 8 {
		t.Errorf("%v disconnects in the reply, %v songs abandoned", got[`skald_client_disconnects_total{stage="reply"}`], got[`skald_songs_total{result="abandoned"}`])
	}
	for name, v := range got {
		if strings.HasPrefix(name, "skald_errors_total") && v > 0 {
			t.Errorf("a disconnect is an error: %s is %v", name, v)
		}
	}
}

// A failed song is not a disconnect, even if its stream had begun.
func TestFailureIsNoDisconnect(t *testing.T) {
	sent, goOn := make(chan struct{}, 1), make(chan error, 1)
	goOn <- errors.New("out of tune")
	s, _ := newTestServer(t, Config{}, &fakeSinger{song: pieces(sent, goOn)})
	post(s, with(`"stream_format":"sse"`))
	got := scrape(t, s)
	if got[`skald_errors_total{code="internal_error"}`] != 1 || got[`skald_songs_total{result="failed"}`] != 1 || got[`skald_songs_total{result="abandoned"}`] != 0 {
		t.Errorf("%v", got)
	}
}
