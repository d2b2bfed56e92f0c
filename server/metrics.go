package server

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skald/host/engine"
	"skald/server/jobs"
)

// metrics count and time what happens; what is so at the moment of a scrape comes from
// the gauges.
type metrics struct {
	registry *prometheus.Registry

	requests    *prometheus.HistogramVec // route, code
	errors      *prometheus.CounterVec   // code
	disconnects *prometheus.CounterVec   // stage
	songs       *prometheus.CounterVec   // result
	stages      *prometheus.HistogramVec // stage
	firstAudio  prometheus.Histogram
	speed       prometheus.Histogram
	audio       prometheus.Counter
	frames      prometheus.Counter
	tries       *prometheus.CounterVec // outcome
}

var (
	longBuckets  = []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800} // seconds
	speedBuckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100}
)

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "skald", Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "skald", Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	single := func(v *prometheus.HistogramVec) prometheus.Histogram {
		return v.WithLabelValues().(prometheus.Histogram)
	}
	m.requests = histograms("request_duration_seconds", "Time from a request to the end of its reply, by route and status.", longBuckets, "route", "code")
	m.errors = counters("errors_total", "Replies, and ends of streams, that are errors, by the code of the error object.", "code")
	m.disconnects = counters("client_disconnects_total", "Clients that went away or did not read, by what was being done for them.", "stage")
	m.songs = counters("songs_total", "Songs that ended, by how: sung, failed or abandoned by the client.", "result")
	m.stages = histograms("song_stage_duration_seconds", "Time that finished songs took in each stage; stages of one song overlap.", longBuckets, "stage")
	m.firstAudio = single(histograms("stream_first_audio_seconds", "Time from a request for a stream to its first audio.", longBuckets))
	m.speed = single(histograms("song_real_time_factor", "Seconds of audio for each second of making it, of finished songs, without their time in the queue.", speedBuckets))
	m.audio = counters("audio_seconds_total", "Audio made.").WithLabelValues()
	m.frames = counters("frames_total", "Frames sung by the language model.").WithLabelValues()

	m.tries = counters("jobs_tries_total", "Tries of jobs that ended here, by how.", "outcome")
	for _, outcome := range jobs.Outcomes() {
		m.tries.WithLabelValues(string(outcome))
	}

	for _, stage := range stages {
		m.disconnects.WithLabelValues(string(stage))
		m.stages.WithLabelValues(string(stage))
	}
	m.disconnects.WithLabelValues(stageReply)
	for _, result := range []string{resultSung, resultFailed, resultAbandoned} {
		m.songs.WithLabelValues(result)
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Results of songs.
const (
	resultSung      = "sung"
	resultFailed    = "failed"
	resultAbandoned = "abandoned"
)

// stageReply stands beside the engine's stages for the sending of a reply.
const stageReply = "reply"

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) request(route string, status int, took time.Duration) {
	if route == "" {
		route = "other" // what callers invent makes no series
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

// watch follows one song.
func (m *metrics) watch() *watch {
	return &watch{metrics: m, start: time.Now(), stage: engine.StageQueue}
}

type watch struct {
	metrics *metrics
	start   time.Time
	audio   float64 // seconds so far

	mu     sync.Mutex
	stage  engine.Stage
	frames int
}

// progress is the song's Progress.
func (w *watch) progress(p engine.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = p.Stage
	if p.Frames > w.frames {
		w.metrics.frames.Add(float64(p.Frames - w.frames))
		w.frames = p.Frames
	}
}

// sounds notes seconds of audio, which a stream sends at once.
func (w *watch) sounds(seconds float64, stream bool) {
	if w.audio == 0 && stream {
		w.metrics.firstAudio.Observe(time.Since(w.start).Seconds())
	}
	w.audio += seconds
	w.metrics.audio.Add(seconds)
}

// sung notes a song whose samples are all made, with the time of each stage.
func (w *watch) sung(timings []engine.Timing) {
	took := time.Since(w.start)
	for _, t := range timings {
		w.metrics.stages.WithLabelValues(string(t.Stage)).Observe(t.Duration.Seconds())
		if t.Stage == engine.StageQueue {
			took -= t.Duration
		}
	}
	w.metrics.speed.Observe(w.audio / max(took.Seconds(), 1e-9))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = stageReply
}

// ended notes how all ended; gone says that the client did not wait.
func (w *watch) ended(err error, gone bool) {
	w.mu.Lock()
	stage := w.stage
	w.mu.Unlock()
	if errors.Is(err, errReader) {
		stage = stageReply
	}
	switch {
	case gone:
		w.metrics.disconnects.WithLabelValues(string(stage)).Inc()
		w.metrics.songs.WithLabelValues(resultAbandoned).Inc()
	case err != nil:
		w.metrics.songs.WithLabelValues(resultFailed).Inc()
	default:
		w.metrics.songs.WithLabelValues(resultSung).Inc()
	}
}
