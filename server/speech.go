package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"skald/host/audio"
	"skald/host/engine"
	"skald/server/request"
)

const maxBodyBytes = 1 << 20

// patience bounds how long a client may take, so that slow ones do not hold memory and
// places in the queue for ever.
type patience struct {
	body  time.Duration // for the whole body of a request
	reply time.Duration // for reading a reply, and so much more as its size takes at rate
	rate  int           // bytes a second; 16-bit stereo plays at 172 KiB/s
}

var defaultPatience = patience{body: 30 * time.Second, reply: 30 * time.Second, rate: 32 << 10}

// speech is POST /v1/audio/speech.
func (s *Server) speech(w http.ResponseWriter, r *http.Request) {
	m, refusal := s.ready()
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	body, refusal := s.readBody(w, r)
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	speech, problems := request.Parse(body, s.rules(m))
	if len(problems) > 0 {
		writeError(w, errProblems(problems))
		return
	}
	release, refusal := s.admit()
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	defer release()

	song, err := s.sing(r.Context(), m, speech.Song)
	if err == nil {
		err = s.writeSong(w, song, speech.Format)
	}
	switch {
	case err == nil:
	case r.Context().Err() != nil && !errors.Is(err, errDraining):
		// The client is gone, and its song with it.
	default:
		e := errSong(speech, err)
		if e.status >= http.StatusInternalServerError {
			s.log.Error("song failed", "error", err, "request_id", w.Header().Get(requestIDHeader))
		}
		writeError(w, e)
	}
}

// readBody takes the JSON body of a request.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *apiError) {
	if refusal := checkHeaders(r); refusal != nil {
		return nil, refusal
	}
	tooLarge := newError(http.StatusRequestEntityTooLarge, badRequest, "request_too_large",
		fmt.Sprintf("the body is larger than %d bytes", maxBodyBytes))
	if r.ContentLength > maxBodyBytes {
		w.Header().Set("Connection", "close")
		return nil, tooLarge
	}
	// After a whole body net/http lifts the deadline itself, to watch the connection for the
	// client's leaving. What has no deadlines, as in tests, needs none.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.patience.body))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err == nil {
		return body, nil
	}
	w.Header().Set("Connection", "close")
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, newError(http.StatusBadRequest, badRequest, "body_timeout",
			fmt.Sprintf("the body did not arrive within %v", s.patience.body))
	}
	return nil, newError(http.StatusBadRequest, badRequest, "incomplete_body", "the body could not be read to its end")
}

// checkHeaders refuses what would otherwise be dropped silently or misread.
func checkHeaders(r *http.Request) *apiError {
	if len(r.URL.RawQuery) > 0 {
		return newError(http.StatusBadRequest, badRequest, string(request.UnknownField),
			fmt.Sprintf("the URL has a query, %q, which would have no effect; every field goes into the JSON body", limit(r.URL.RawQuery)))
	}
	unsupported := func(message string) *apiError {
		return newError(http.StatusUnsupportedMediaType, badRequest, "unsupported_media_type", message)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return unsupported(fmt.Sprintf("Content-Encoding %q is not supported; send the body as it is", limit(encoding)))
	}
	contentType := r.Header.Get("Content-Type")
	if contentType == "" {
		// Tools may leave it out, but a web page of another site must not: with
		// application/json its browser asks first, and CORS is off.
		if r.Header.Get("Origin") == "" {
			return nil
		}
		return unsupported("send Content-Type: application/json")
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" {
		return unsupported(fmt.Sprintf("Content-Type %q is not supported; send application/json", limit(contentType)))
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return unsupported(fmt.Sprintf("charset %q is not supported; JSON is UTF-8", limit(charset)))
	}
	return nil
}

// exposedHeaders are those of a song that scripts of other origins may read.
var exposedHeaders = []string{
	requestIDHeader, "Skald-Seed", "Skald-Frames", "Skald-End-Reason", "Skald-Sample-Rate",
	"Skald-Channels", "Skald-Warning", "Server-Timing", "Retry-After",
}

// encode makes the body of a reply: the samples as 16-bit integers, with a header if
// the format has one.
func encode(song *engine.Song, format request.Format) ([]byte, error) {
	f := audio.Format{Encoding: audio.PCM16, SampleRate: song.SampleRate, Channels: len(song.Samples)}
	size := len(song.Samples[0]) * f.FrameBytes()
	var header []byte
	if format == request.WAV {
		var err error
		if header, err = audio.WAVHeader(f, int64(size)); err != nil {
			return nil, err
		}
	}
	return audio.AppendSamples(append(make([]byte, 0, len(header)+size), header...), f.Encoding, song.Samples[:]...)
}

// writeSong sends a song with what there is to know about it. It fails before anything
// is written or not at all.
func (s *Server) writeSong(w http.ResponseWriter, song *engine.Song, format request.Format) error {
	start := time.Now()
	body, err := encode(song, format)
	if err != nil {
		return err
	}
	timings := append(slices.Clone(song.Timings), engine.Timing{Stage: engine.StageEncode, Duration: time.Since(start)})

	h := w.Header()
	h.Set("Content-Type", "audio/"+string(format))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Skald-Seed", strconv.FormatUint(song.Seed, 10))
	h.Set("Skald-Frames", strconv.Itoa(song.Frames))
	h.Set("Skald-End-Reason", string(song.EndReason))
	h.Set("Skald-Sample-Rate", strconv.Itoa(song.SampleRate))
	h.Set("Skald-Channels", strconv.Itoa(len(song.Samples)))
	for _, warning := range song.Warnings {
		h.Add("Skald-Warning", headerText(warning))
	}
	h.Set("Server-Timing", serverTiming(timings))

	// The deadline must go again for the connection's next reply, and everything must be
	// sent before. Errors mean that the client is gone.
	rc := http.NewResponseController(w)
	more := time.Duration(len(body)/s.patience.rate) * time.Second
	_ = rc.SetWriteDeadline(time.Now().Add(s.patience.reply + more))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
	_ = rc.Flush()
	_ = rc.SetWriteDeadline(time.Time{})
	return nil
}

// stages in the order of Server-Timing.
var stages = []engine.Stage{
	engine.StageQueue, engine.StageLoad, engine.StagePrompt, engine.StageAR,
	engine.StageFlow, engine.StageVocoder, engine.StageEncode,
}

// serverTiming formats timings as the header of that name: every stage, in
// milliseconds.
func serverTiming(timings []engine.Timing) string {
	took := map[engine.Stage]time.Duration{}
	for _, t := range timings {
		took[t.Stage] += t.Duration
	}
	entries := make([]string, len(stages))
	for i, stage := range stages {
		entries[i] = fmt.Sprintf("%s;dur=%.3f", stage, took[stage].Seconds()*1000)
	}
	return strings.Join(entries, ", ")
}

// headerText makes a text fit for a header, which is ASCII on one line: other
// characters are escaped as in Go and JSON.
func headerText(s string) string {
	const most = 1000 // bytes
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	var b strings.Builder
	for _, r := range s {
		if r >= ' ' && r <= '~' {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
