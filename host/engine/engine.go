// Package engine runs songs on a device: it loads a checkpoint with progress, makes
// one song after another, reports how far each is, stops when its context ends, and
// refuses to hand out numbers that cannot be music.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Options say what to load and where.
type Options struct {
	ModelDir  string // "" is the built-in demonstration model
	Device    string // "auto", "cpu", "cuda", "cuda:N"
	Threads   int    // 0: as many as the machine offers
	Precision string // "fp32", "mixed", "bf16"; "" is the checkpoint's best
	Logger    *slog.Logger
	Progress  func(LoadProgress) // called during Open, from one goroutine
}

// LoadProgress tells how far loading is.
type LoadProgress struct {
	Component      string // language_model, ...
	Bytes, Total   int64
	BytesPerSecond float64
	Done           bool
}

// Info describes a loaded model to clients.
type Info struct {
	Name       string // served name: from skald.json, else the folder's name
	Aliases    []string
	Title      string // for people
	Notice     string // from skald.json
	BuiltIn    bool   // the demonstration model
	Precision  string
	Device     string
	SampleRate int
	FrameRate  float64 // frames a second

	MaxFrames       int // of one song
	MaxPromptTokens int
	MaxPositions    int // prompt tokens + frames + 1 must fit

	LoadTime time.Duration
	Warnings []string // of loading: a raised precision, ...
}

// Engine owns a device and a loaded model. Its methods are safe for concurrent
// use; songs are made one at a time, in the order of the calls.
type Engine struct{}

// Open loads a model. It returns early when ctx ends.
func Open(ctx context.Context, o Options) (*Engine, error) {
	return nil, errors.New("engine: under construction")
}

// Info describes the loaded model.
func (e *Engine) Info() Info { return Info{} }

// Defaults returns a request with every default filled in: the checkpoint's own
// where it has them.
func (e *Engine) Defaults() Request { return Request{} }

// Check reports what is wrong with a request, without doing any work, as one
// *RequestError per fault joined by errors.Join, and the warnings the song will
// carry.
func (e *Engine) Check(r Request) (warnings []string, err error) { return nil, nil }

// Sing makes one song. It waits for its turn. When ctx ends it stops within one
// frame, one flow step or one vocoder block and returns the context's cause.
// Errors: *RequestError, *NumericError, *MemoryError, context errors.
func (e *Engine) Sing(ctx context.Context, r Request) (*Song, error) {
	return nil, errors.New("engine: under construction")
}

// Busy reports the songs waiting and running.
func (e *Engine) Busy() (waiting, running int) { return 0, 0 }

// LastProgress is the time of the last frame, step or block, for health checks;
// zero when nothing has run.
func (e *Engine) LastProgress() time.Time { return time.Time{} }

// Close waits for the running song's current step, ends it, and frees the device.
func (e *Engine) Close() error { return nil }
