package engine

import (
	"fmt"
	"time"
)

// PromptMode says how lyrics become the prompt; api: prompt_mode.
type PromptMode string

// The two prompt modes.
const (
	Friendly  PromptMode = "friendly"  // text on a tag's line moves to the next line
	Reference PromptMode = "reference" // exactly what the reference pipeline does
)

// RNG names a random number generator.
type RNG string

// The generators: Philox is the default on every device, Torch repeats the draws of
// torch's CPU generator so that a seed gives the song of the reference pipeline.
const (
	Philox RNG = "philox"
	Torch  RNG = "torch"
)

// Request is one song to make. The zero value of a field is not a default: call
// Engine.Defaults first and change what the caller said.
type Request struct {
	Lyrics       string
	Instructions string // the caption: style, voice, instruments
	PromptMode   PromptMode
	Instrumental bool // no lyrics needed: a section sheet is made
	MaxFrames    int  // upper bound, 25 a second; see Info.FrameRate
	Seed         uint64
	Steps        int     // Euler steps of the flow transformer
	Guidance     float64 // guidance scale of the flow transformer
	RNG          RNG

	// Replay, when set, supplies codes and noise instead of drawing them. It bounds the
	// song as MaxFrames does.
	Replay *Replay
	// Trace, when set, receives every stage's tensors as they are computed, under the
	// names of docs/numerics.md. The data is only valid during the call.
	Trace func(t TraceTensor) error
	// Progress, when set, is called after every frame, flow step and vocoder block, one
	// call at a time. It must return quickly. Frames and windows of a song overlap.
	Progress func(Progress)
	// Sink, when set, receives the samples of each window, left and right, as soon as
	// they are final, from the goroutine that called Sing; Song.Samples stays empty. An
	// error ends the song. A slow sink delays nobody else.
	Sink func(samples [2][]float32) error
	// Finish, when closed, ends the song with what was sung so far.
	Finish <-chan struct{}
}

// TraceTensor is one recorded tensor; exactly one of F32, BF16 and I32 is set.
type TraceTensor struct {
	Name  string
	Shape []int
	F32   []float32
	BF16  []uint16
	I32   []int32
}

// Replay holds recorded draws.
type Replay struct {
	// Codes are [iterations][codebooks]; iteration 0 only primes. After the last one
	// the song ends.
	Codes [][]int32
	// EndedByToken says that the recorded song ended itself.
	EndedByToken bool
	// Noise holds one [channels][latents] draw per window, flattened; nil entries, and
	// windows beyond the end, are drawn from the seed.
	Noise [][]float32
}

// Stage names a part of the work, as in Server-Timing.
type Stage string

// Stages in the order of a song.
const (
	StageQueue   Stage = "queue"
	StageLoad    Stage = "load"
	StagePrompt  Stage = "prompt"
	StageAR      Stage = "ar" // language model and depth decoder
	StageFlow    Stage = "flow"
	StageVocoder Stage = "vocoder"
	StageEncode  Stage = "encode"
)

// Progress tells how far a song is.
type Progress struct {
	Stage     Stage
	Fraction  float64 // of this stage, 0 to 1
	Frames    int     // sung so far
	MaxFrames int
	Window    int // from 0, in flow and vocoder
	Windows   int // 0 while not known
	Elapsed   time.Duration
	ETA       time.Duration // of the whole song; 0 while unknown
}

// EndReason says why a song ended.
type EndReason string

// The reasons: the model's own end token, the length asked for, or a caller's
// finish.
const (
	EndEOS      EndReason = "eos"
	EndLength   EndReason = "length"
	EndFinished EndReason = "finished"
)

// Song is a finished song.
type Song struct {
	Samples      [2][]float32 // left and right, in [-1, 1]; empty with a Sink
	SampleRate   int          // Hz
	Seed         uint64
	PromptTokens int
	Frames       int
	EndReason    EndReason
	Warnings     []string
	Timings      []Timing // in stage order
	RMS, Peak    float64  // of all samples
	// Codes are those of every iteration, as in Replay: with them the same song can be
	// rendered again in another way.
	Codes [][]int32
}

// Timing is the time one stage took, summed over its windows.
type Timing struct {
	Stage    Stage
	Duration time.Duration
}

// RequestError is a fault of the request, found before any work is done.
type RequestError struct {
	Field   string // lyrics, instructions, max_frames, ...
	Message string // what is wrong, what was expected, what to do
}

func (e *RequestError) Error() string { return e.Field + ": " + e.Message }

// NumericError is a failure of the computation: a number that is not finite, or
// output that is constant or silent. No song comes of it.
type NumericError struct {
	Stage Stage
	What  string
}

func (e *NumericError) Error() string {
	return fmt.Sprintf("numeric failure in stage %s: %s", e.Stage, e.What)
}

// MemoryError says that something does not fit, with the numbers.
type MemoryError struct {
	Need, Have int64 // bytes
	What       string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs %d bytes, %d are available", e.What, e.Need, e.Have)
}
