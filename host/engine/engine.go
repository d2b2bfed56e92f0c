// Package engine runs songs on a device: it loads a checkpoint with progress, makes
// one song after another, reports how far each is, stops when its context ends, and
// refuses to hand out numbers that cannot be music.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"skald/host"
	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/music3"
	"skald/host/music3/prompt"
	"skald/host/music3/tokenizer"
	"skald/host/nano"
)

// Options say what to load and where.
type Options struct {
	ModelDir  string // "" is the built-in demonstration model
	Device    string // "auto", "cpu", "cuda", "cuda:N"; "" is "auto"
	Threads   int    // 0: as many as the machine offers
	Precision string // "fp32", "mixed", "bf16"; "" is "mixed", as the published server runs
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
type Engine struct {
	log       *slog.Logger
	info      Info
	manifest  checkpoint.Manifest
	ck        *checkpoint.Checkpoint
	device    compute.Device
	tokenizer *tokenizer.Tokenizer
	model     *music3.Model
	loop      *music3.FrameLoop
	rates     rates

	turn             chan struct{} // holds a token while no song runs
	waiting, running atomic.Int64
	lastProgress     atomic.Int64 // Unix nanoseconds

	closing   context.Context // ends when Close is called
	stop      context.CancelCauseFunc
	closeOnce sync.Once
	closeErr  error
}

// ErrClosed is the cause of songs that Close ended.
var ErrClosed = errors.New("the engine is shutting down")

// Open loads a model. It returns early when ctx ends.
func Open(ctx context.Context, o Options) (e *Engine, err error) {
	start := time.Now()
	e = &Engine{log: o.Logger, turn: make(chan struct{}, 1)}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.closing, e.stop = context.WithCancelCause(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
			e = nil
		}
	}()
	if o.ModelDir == "" {
		e.ck, err = checkpoint.OpenFS(nano.FS(), "the built-in model")
	} else {
		e.ck, err = checkpoint.Open(o.ModelDir)
	}
	if err != nil {
		return e, err
	}
	if err := e.ck.Check(); err != nil {
		return e, err
	}
	e.manifest = e.ck.Manifest
	precision, err := e.choosePrecision(o.Precision)
	if err != nil {
		return e, err
	}
	if err := e.loadTokenizer(); err != nil {
		return e, err
	}
	if e.device, err = host.Open(o.Device, o.Threads); err != nil {
		return e, err
	}
	if e.model, err = music3.Load(ctx, e.device, e.ck, precision, e.loadProgress(o.Progress)); err != nil {
		return e, err
	}
	if e.loop, err = e.model.NewFrameLoop(1); err != nil {
		return e, err
	}
	if o.Progress != nil {
		o.Progress(LoadProgress{Bytes: e.ck.Bytes(), Total: e.ck.Bytes(), Done: true})
	}
	e.describe(o.ModelDir == "", precision, time.Since(start))
	e.turn <- struct{}{}
	e.log.Info("model loaded", "name", e.info.Name, "precision", e.info.Precision, "device", e.info.Device, "seconds", e.info.LoadTime.Seconds())
	return e, nil
}

// choosePrecision raises the acoustic half to the checkpoint's floor.
func (e *Engine) choosePrecision(asked string) (music3.Precision, error) {
	if asked == "" {
		asked = string(music3.Mixed)
	}
	p, err := music3.ParsePrecision(asked)
	if err != nil {
		return "", err
	}
	raised := p.RaiseAcoustic(music3.Precision(e.manifest.AcousticPrecision))
	if raised != p {
		e.info.Warnings = append(e.info.Warnings, fmt.Sprintf(
			"precision raised from %s to %s: this checkpoint's acoustic stages need %s", p, raised, e.manifest.AcousticPrecision))
	}
	return raised, nil
}

// loadTokenizer reads the tokenizer, which must have the prompt's control tokens.
func (e *Engine) loadTokenizer() error {
	data, err := e.ck.ReadFile("tokenizer/tokenizer.json")
	if err != nil {
		return err
	}
	if e.tokenizer, err = tokenizer.Parse(data); err == nil {
		err = prompt.CheckTokenizer(e.tokenizer)
	}
	if rows := e.ck.Config.LanguageModel.VocabSize; err == nil && int(e.tokenizer.MaxID()) >= rows {
		err = fmt.Errorf("its largest id is %d, but the language model has embeddings for 0 to %d: the files belong to different models", e.tokenizer.MaxID(), rows-1)
	}
	if err != nil {
		return fmt.Errorf("%s: tokenizer/tokenizer.json: %w", e.ck.Name, err)
	}
	return nil
}

// loadProgress turns bytes per tensor into a rate; nil stays nil.
func (e *Engine) loadProgress(report func(LoadProgress)) func(string, int64) {
	if report == nil {
		return nil
	}
	start, done, total := time.Now(), int64(0), e.ck.Bytes()
	return func(component string, bytes int64) {
		done = min(done+bytes, total)
		report(LoadProgress{
			Component: component, Bytes: done, Total: total,
			BytesPerSecond: float64(done) / max(time.Since(start).Seconds(), 1e-9),
		})
	}
}

func (e *Engine) describe(builtIn bool, p music3.Precision, took time.Duration) {
	name := e.manifest.Name
	if name == "" {
		name = e.ck.Name
	}
	d := e.device.Info()
	e.info = Info{
		Name: name, Title: e.manifest.Title, Notice: e.manifest.Notice, BuiltIn: builtIn,
		Precision: string(p), Device: d.Kind + " (" + d.Name + ", " + d.Detail + ")",
		SampleRate: e.model.SampleRate(), FrameRate: e.model.FrameRate(),
		MaxFrames: music3.MaxFrames, MaxPromptTokens: maxPromptTokens,
		MaxPositions: e.model.Config.LanguageModel.MaxPositions,
		LoadTime:     took, Warnings: e.info.Warnings,
	}
}

// Info describes the loaded model.
func (e *Engine) Info() Info { return e.info }

// Defaults returns a request with every default filled in: the checkpoint's own
// where it has them.
func (e *Engine) Defaults() Request {
	r := Request{
		PromptMode: Friendly, RNG: Philox, Steps: 30, Guidance: 1.7,
		Instructions: e.manifest.Defaults.Instructions,
	}
	d := e.manifest.Defaults
	if d.NumInferenceSteps != nil {
		r.Steps = *d.NumInferenceSteps
	}
	if d.GuidanceScale != nil {
		r.Guidance = *d.GuidanceScale
	}
	seconds := 60.0
	if d.AudioDuration != nil {
		seconds = *d.AudioDuration
	}
	r.MaxFrames, _ = e.Frames(seconds)
	return r
}

// Frames is the number of whole frames in a duration, at most Info.MaxFrames; an
// error when there is none.
func (e *Engine) Frames(seconds float64) (int, error) { return e.model.Frames(seconds) }

// Busy reports the songs waiting and running.
func (e *Engine) Busy() (waiting, running int) {
	return int(e.waiting.Load()), int(e.running.Load())
}

// LastProgress is the time of the last frame, step or block, for health checks;
// zero when nothing has run.
func (e *Engine) LastProgress() time.Time {
	if n := e.lastProgress.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Close ends the running song at its next frame, step or block, and frees the
// device and the mapping.
func (e *Engine) Close() error {
	e.closeOnce.Do(func() {
		e.stop(ErrClosed)
		if e.loop != nil {
			<-e.turn
			e.closeErr = errors.Join(e.closeErr, e.loop.Close())
		}
		if e.device != nil {
			e.closeErr = errors.Join(e.closeErr, e.device.Close())
		}
		if e.ck != nil {
			e.closeErr = errors.Join(e.closeErr, e.ck.Close())
		}
	})
	return e.closeErr
}
