package server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"skald/host/audio"
	"skald/host/engine"
	"skald/server/request"
)

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

	more := time.Duration(len(body)/s.patience.rate) * time.Second
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.patience.reply + more))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // an error means that the client is gone
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
