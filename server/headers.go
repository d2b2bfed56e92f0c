package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"skald/host/engine"
)

// headersOfSong are those of a song's reply, and what they tell.
var headersOfSong = map[string]string{
	requestIDHeader:     "Names the request; the caller's own if it sent one.",
	"Skald-Seed":        "The seed of the song.",
	"Skald-Sample-Rate": "In Hz.",
	"Skald-Channels":    "Their number.",
	"Skald-Warning":     "What is to be known about this song; one header for each.",
	"Skald-Frames":      "Frames that were sung. In a stream a trailer.",
	"Skald-End-Reason":  "Why the song ended: eos, length or finished. In a stream a trailer.",
	"Server-Timing":     "Milliseconds in each stage. In a stream a trailer.",
}

// exposedHeaders are those that scripts of other origins may read.
var exposedHeaders = append(slices.Sorted(maps.Keys(headersOfSong)), "Retry-After", "Location", "Skald-Complete", "Content-Range", "ETag")

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
