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
	Songs     int    // sung at once; 0 is defaultSongs
	PackBytes int64  // see cpu.Options; 0 packs what is good and fits
	Precision string // "auto", "fp32", "mixed", "bf16"; "" is "auto": mixed, as the published server runs, or bf16 where only that fits
	Logger    *slog.Logger
	Progress  func(LoadProgress) // called during Open, from one goroutine
}

// LoadProgress tells how far loading is.
type LoadProgress struct {
	Component      string // language_model, ...
	Bytes, Total   int64
	BytesPerSecond float64
	Done           bool
	Sensors        compute.Sensors // of the device, where it has any
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
	Songs      int     // made at once

	MaxFrames       int // of one song
	MaxPromptTokens int
	MaxPositions    int // prompt tokens + frames + 1 must fit

	LoadTime time.Duration
	Warnings []string // of loading: a raised precision, ...
}

// Engine owns a device and a loaded model. Its methods are safe for concurrent use.
//
// Two goroutines do the work. One runs the frame loop over all songs that are being
// sung, the other renders windows, one at a time, the earliest of each song first. A
// song is in the hands of either, both or, between two windows, none.
type Engine struct {
	log       *slog.Logger
	info      Info
	manifest  checkpoint.Manifest
	ck        *checkpoint.Checkpoint
	device    compute.Device
	tokenizer *tokenizer.Tokenizer
	model     *music3.Model
	loop      *music3.FrameLoop
	renderer  *music3.Renderer
	songs     int // sung at once
	positions int // of the frame loop's cache
	rates     rates

	lastProgress atomic.Int64 // Unix nanoseconds

	mu       sync.Mutex
	waiting  []*singing // for a place in the frame loop, in order
	singers  []*singing // in the frame loop
	all      []*singing // that are not over, in order of arrival
	usage    Usage      // but for the memory
	framesGo *sync.Cond // a song arrived, or the engine closes
	windowGo *sync.Cond // a window may be ready, or the engine closes

	closing   context.Context // ends when Close is called
	stop      context.CancelCauseFunc
	workers   sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// defaultSongs is how many songs share a frame step unless told otherwise: on a
// processor, frames are bound by memory reads, which more songs share.
const defaultSongs = 4

// ErrClosed is the cause of songs that Close ended.
var ErrClosed = errors.New("the engine is shutting down")

// Open loads a model. It returns early when ctx ends.
func Open(ctx context.Context, o Options) (e *Engine, err error) {
	start := time.Now()
	e = &Engine{log: o.Logger, songs: o.Songs}
	e.framesGo, e.windowGo = sync.NewCond(&e.mu), sync.NewCond(&e.mu)
	if e.songs == 0 {
		e.songs = defaultSongs
	}
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
	precision, err := e.choosePrecision(o)
	if err != nil {
		return e, err
	}
	if err := e.loadTokenizer(); err != nil {
		return e, err
	}
	memory, err := e.openDevice(o, precision)
	if err != nil {
		return e, err
	}
	if e.device.Info().Kind == "cpu" && o.Device != "cpu" {
		if why := host.Passed(); why != nil {
			e.log.Info("songs are made on the processor", "why", why)
		}
	}
	need := memory.Need
	e.log.Info("memory", "needed", need.Total(), "weights_in_place", need.InPlace, "weights_own", need.Private,
		"kv_cache", need.KVCache, "songs", need.Songs, "working", need.Scratch, "longest_song_seconds", memory.Seconds, "available", memory.Have.Free, "total", memory.Have.Total)
	progress := e.loadProgress(o.Progress, memory)
	if err := e.preload(ctx, memory.plan, preloadWorkers(e.device.Info().Threads), progress); err != nil {
		return e, fmt.Errorf("reading the weights: %w", err)
	}
	if e.model, err = music3.Load(ctx, e.device, e.ck, e.ck.Config, precision, progress); err != nil {
		return e, err
	}
	e.positions = memory.Positions
	if e.loop, err = e.model.NewFrameLoop(e.songs, e.positions); err != nil {
		return e, err
	}
	e.usage.KVBlocksTaken, e.usage.KVBlocks = e.loop.KVBlocks()
	if e.renderer, err = e.model.NewRenderer(); err != nil {
		return e, err
	}
	n := e.ck.Bytes()
	last := LoadProgress{Component: "everything", Bytes: n, Total: n, Done: true, Sensors: e.sensors()}
	last.BytesPerSecond = float64(n) / max(time.Since(start).Seconds(), 1e-9)
	e.logLoading("loaded", last)
	if o.Progress != nil {
		o.Progress(LoadProgress{Bytes: n, Total: n, Done: true, Sensors: last.Sensors})
	}
	e.describe(o.ModelDir == "", precision, time.Since(start))
	e.workers.Go(e.runFrames)
	e.workers.Go(e.runWindows)
	e.log.Info("model loaded", "name", e.info.Name, "precision", e.info.Precision, "device", e.info.Device, "seconds", e.info.LoadTime.Seconds())
	return e, nil
}

// preloadWorkers is how many workers read weights: so many pages are asked for at once.
func preloadWorkers(threads int) int { return max(2, min(threads, 8)) }

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

// loadProgress turns bytes into a rate, which is that of one component. Bytes count twice:
// when they are read, and when they are prepared.
func (e *Engine) loadProgress(report func(LoadProgress), memory Memory) func(component string, bytes int64) {
	if report == nil {
		report = func(LoadProgress) {}
	}
	now := LoadProgress{Total: memory.plan.Bytes, Sensors: e.sensors()}
	if e.ck.Mapped() {
		now.Total += memory.ReadBytes()
	}
	e.logLoading("loading begins", now)
	var done, before int64
	start, read := time.Now(), time.Now()
	return func(component string, bytes int64) {
		if component != now.Component {
			if now.Component != "" {
				now.Sensors = e.sensors()
				e.logLoading("loaded", now)
			}
			now.Component, start, before = component, time.Now(), done
		}
		done += bytes
		now.Bytes = min(done, now.Total)
		now.BytesPerSecond = float64(done-before) / max(time.Since(start).Seconds(), 1e-9)
		if time.Since(read) >= sensorsEvery {
			now.Sensors, read = e.sensors(), time.Now()
		}
		report(now)
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
		SampleRate: e.model.SampleRate(), FrameRate: e.model.FrameRate(), Songs: e.songs,
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

// Busy reports the songs that wait for a place and those that are being made.
func (e *Engine) Busy() (waiting, running int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting), len(e.all) - len(e.waiting)
}

// LastProgress is the time of the last frame, step or block, for health checks;
// zero when nothing has run.
func (e *Engine) LastProgress() time.Time {
	if n := e.lastProgress.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Close ends all songs at their next frame, step or block, and frees the device and
// the mapping.
func (e *Engine) Close() error {
	e.closeOnce.Do(func() {
		e.stop(ErrClosed)
		e.mu.Lock()
		e.framesGo.Broadcast()
		e.windowGo.Broadcast()
		e.mu.Unlock()
		e.workers.Wait()
		e.mu.Lock()
		for len(e.all) > 0 {
			e.windowGo.Wait()
		}
		e.mu.Unlock()
		var errs []error
		if e.renderer != nil {
			errs = append(errs, e.renderer.Close())
		}
		if e.loop != nil {
			errs = append(errs, e.loop.Close())
		}
		if e.device != nil {
			errs = append(errs, e.device.Close())
		}
		if e.ck != nil {
			errs = append(errs, e.ck.Close())
		}
		e.closeErr = errors.Join(errs...)
	})
	return e.closeErr
}
