package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"skald/host/audio"
	"skald/host/engine"
	"skald/server/request"
)

// errReader is the end of a song whose listener is gone or too slow.
var errReader = errors.New("the reply could not be written")

// reply answers one request for a song: it takes the samples, makes bytes of them, and
// sends these as they come or, whole, at the end. Nothing is sent before there is
// audio, so that what fails until then still gets a status.
type reply struct {
	w       http.ResponseWriter
	ctx     context.Context // of the request
	speech  request.Speech
	out     patientWriter
	encoder *audio.Encoder
	whole   audio.Buffer  // the bytes of a reply that is sent at the end
	pending bytes.Buffer  // the bytes of a stream that are not sent yet
	took    time.Duration // by encoding
	begun   bool          // the status is sent
	broken  bool          // a write has failed
}

// newReply prepares a reply; close must be called at its end.
func (s *Server) newReply(w http.ResponseWriter, r *http.Request, speech request.Speech, info engine.Info) (*reply, error) {
	a := &reply{w: w, ctx: r.Context(), speech: speech, out: patientWriter{w: w, patience: s.patience}}
	var bytes io.Writer = &a.whole
	if speech.Stream {
		bytes = &a.pending
	}
	config := audio.EncoderConfig{
		Container: speech.Container, Channels: len(engine.Song{}.Samples),
		InputRate: info.SampleRate, SampleRate: speech.SampleRate,
	}
	// A WAV reply is a header of 44 bytes and the samples, nothing else, so that its size
	// tells its length; the headers of the reply say what metadata would.
	if speech.Container != audio.WAV {
		config.Metadata = &audio.Metadata{
			Title: "Song", Model: info.Name, Seed: speech.Song.Seed, Software: strings.TrimSpace("skald " + s.config.Version),
		}
	}
	var err error
	a.encoder, err = audio.NewEncoder(bytes, config)
	return a, err
}

// close releases what encoding took. What it could still encode, nobody waits for.
func (a *reply) close() { _ = a.encoder.Close() }

// take is the song's Sink.
func (a *reply) take(samples [2][]float32) error {
	start := time.Now()
	err := a.encoder.Write(samples[:]...)
	a.took += time.Since(start)
	if err != nil || !a.speech.Stream {
		return err
	}
	return a.send()
}

// end encodes what is left. It fails when nobody waits for it any more.
func (a *reply) end() error {
	start := time.Now()
	err := a.encoder.Close()
	a.took += time.Since(start)
	if err != nil {
		return err
	}
	return a.ctx.Err()
}

// finish sends what is left, and what is known of the song only now.
func (a *reply) finish(song *engine.Song) error {
	if a.speech.Stream {
		return a.finishStream(song)
	}
	h := a.w.Header()
	h.Set("Content-Length", strconv.Itoa(len(a.whole.Bytes())))
	a.setEarly(song.Warnings)
	a.setLate(song)
	a.begun = true
	a.w.WriteHeader(http.StatusOK)
	return a.write(a.whole.Bytes())
}

// setEarly sets the headers of what is known before the song is made.
func (a *reply) setEarly(warnings []string) {
	h := a.w.Header()
	h.Set("Content-Type", a.speech.Container.MediaType())
	if a.speech.Events {
		h.Set("Content-Type", "text/event-stream")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Skald-Seed", strconv.FormatUint(a.speech.Song.Seed, 10))
	h.Set("Skald-Sample-Rate", strconv.Itoa(a.speech.SampleRate))
	h.Set("Skald-Channels", strconv.Itoa(len(engine.Song{}.Samples)))
	for _, warning := range warnings {
		h.Add("Skald-Warning", headerText(warning))
	}
}

// lateHeaders are those of setLate.
var lateHeaders = []string{"Skald-Frames", "Skald-End-Reason", "Server-Timing"}

// setLate sets the headers, or trailers, of what is known after the song is made.
func (a *reply) setLate(song *engine.Song) {
	h := a.w.Header()
	h.Set("Skald-Frames", strconv.Itoa(song.Frames))
	h.Set("Skald-End-Reason", string(song.EndReason))
	h.Set("Server-Timing", serverTiming(a.timings(song)))
}

func (a *reply) timings(song *engine.Song) []engine.Timing {
	return append(slices.Clone(song.Timings), engine.Timing{Stage: engine.StageEncode, Duration: a.took})
}

// write sends bytes. It fails when the client is gone or does not read.
func (a *reply) write(p []byte) error {
	if _, err := a.out.Write(p); err != nil {
		a.broken = true
		return errReader
	}
	return nil
}

// patientWriter writes to a client for at most as long as patience allows for all that
// was written, not counting the time between the writes.
type patientWriter struct {
	w        http.ResponseWriter
	patience patience
	written  int
	waited   time.Duration
}

func (w *patientWriter) Write(p []byte) (int, error) {
	w.expect(len(p))
	start := time.Now()
	n, err := w.w.Write(p)
	w.waited += time.Since(start)
	return n, err
}

// Flush waits until the system has taken what was written.
func (w *patientWriter) Flush() error {
	start := time.Now()
	err := http.NewResponseController(w.w).Flush()
	w.waited += time.Since(start)
	return err
}

// expect sets the time until which n more bytes must be gone.
func (w *patientWriter) expect(n int) {
	w.written += n
	allowed := w.patience.reply + time.Duration(float64(w.written)/float64(w.patience.rate)*float64(time.Second))
	// What has no deadline, as in tests, needs none.
	_ = http.NewResponseController(w.w).SetWriteDeadline(time.Now().Add(allowed - w.waited))
}
