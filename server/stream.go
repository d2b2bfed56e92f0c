package server

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"skald/host/engine"
)

// send sends what a stream has encoded and not sent.
func (a *reply) send() error {
	if a.pending.Len() == 0 {
		return nil
	}
	a.begin()
	defer a.pending.Reset()
	if a.speech.Events {
		for delta := range slices.Chunk(a.pending.Bytes(), deltaBytes) {
			if err := a.event(audioDelta{"speech.audio.delta", base64.StdEncoding.EncodeToString(delta)}); err != nil {
				return err
			}
		}
	} else if err := a.write(a.pending.Bytes()); err != nil {
		return err
	}
	return a.flush()
}

// begin sends the status and the headers of a stream.
func (a *reply) begin() {
	if a.begun {
		return
	}
	a.begun = true
	a.setEarly(a.speech.Warnings)
	h := a.w.Header()
	h.Set("Trailer", strings.Join(lateHeaders, ", "))
	h.Set("X-Accel-Buffering", "no") // nginx would wait for the whole reply
	a.w.WriteHeader(http.StatusOK)
}

// flush hands what was written to the network. A failure of it shows as the end of the
// request's context, since the router's Flush does not tell.
func (a *reply) flush() error {
	if err := a.out.Flush(); err != nil || a.ctx.Err() != nil {
		a.broken = true
		return errReader
	}
	return nil
}

// finishStream sends the end of a stream. What is known late goes into trailers, and
// into the last event.
func (a *reply) finishStream(song *engine.Song) error {
	if err := a.send(); err != nil {
		return err
	}
	if a.speech.Events {
		if err := a.event(a.done(song)); err != nil {
			return err
		}
	}
	a.setLate(song)
	for _, warning := range song.Warnings {
		if !slices.Contains(a.speech.Warnings, warning) {
			a.w.Header().Add(http.TrailerPrefix+"Skald-Warning", headerText(warning))
		}
	}
	a.out.expect(0)
	return nil
}

// fail ends a stream that has begun, so that nobody takes the part for the whole: with
// an event, or else by breaking the connection off, which is the only sign that bare
// audio has. It does not return then; the panic is net/http's way to say this.
func (a *reply) fail(e *apiError) {
	if a.speech.Events && a.ctx.Err() == nil && a.event(failure{"error", e}) == nil && a.flush() == nil {
		return
	}
	panic(http.ErrAbortHandler)
}

// deltaBytes is the audio in one event. Its line is then shorter than 64 KiB, the most
// that some readers of lines take, and there is no padding within a song.
const deltaBytes = 24 << 10

// The events of a stream, as OpenAI's.
type (
	audioDelta struct {
		Type  string `json:"type"`  // speech.audio.delta
		Audio string `json:"audio"` // base64; the deltas together are the audio file
	}
	audioDone struct {
		Type  string `json:"type"` // speech.audio.done
		Usage usage  `json:"usage"`
		// Beyond OpenAI's: what trailers say, for readers who cannot see those.
		Frames       int              `json:"frames"`
		EndReason    engine.EndReason `json:"end_reason"`
		ServerTiming string           `json:"server_timing"`
		Warnings     []string         `json:"warnings"`
	}
	usage struct {
		Input  int `json:"input_tokens"`  // of the prompt
		Output int `json:"output_tokens"` // frames
		Total  int `json:"total_tokens"`
	}
	failure struct {
		Type  string    `json:"type"` // error
		Error *apiError `json:"error"`
	}
)

func (a *reply) done(song *engine.Song) audioDone {
	return audioDone{
		Type:      "speech.audio.done",
		Usage:     usage{song.PromptTokens, song.Frames, song.PromptTokens + song.Frames},
		Frames:    song.Frames,
		EndReason: song.EndReason, ServerTiming: serverTiming(a.timings(song)),
		Warnings: slices.Concat([]string{}, song.Warnings), // a list also when empty
	}
}

// event sends one server-sent event. Its name is in the data, as in OpenAI's streams.
func (a *reply) event(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of ours that is not JSON
	}
	return a.write(slices.Concat([]byte("data: "), data, []byte("\n\n")))
}
