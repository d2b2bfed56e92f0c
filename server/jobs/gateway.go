package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"skald/host/engine"
)

// Gateway makes songs by the workers of a model as an engine.Engine makes them itself. A
// song whose worker dies begins again at another one, and since the same request gives the
// same samples, its caller only hears a pause.
type Gateway struct {
	s *Store

	mu    sync.Mutex
	about hello // as last heard
	last  time.Time
}

// FailedError is the end of a song that a worker could not make.
type FailedError struct{ Failure }

func (e *FailedError) Error() string { return e.Message }

// noWorker is for how long callers wait when no worker can be heard at all.
const noWorker = 30 * time.Second

// ErrNoWorker says that no worker answers.
var ErrNoWorker = errors.New("no worker answers")

// NewGateway waits for the first worker, of the named model or, with "", of any.
func (s *Store) NewGateway(ctx context.Context, model string) (*Gateway, error) {
	for {
		if about, n, _, last := s.fleet.model(model); n > 0 {
			return &Gateway{s: s, about: about, last: last}, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.fleet.news:
		}
	}
}

func (g *Gateway) now() (hello, time.Time, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	about, n, songs, last := g.s.fleet.model(g.about.Info.Name)
	if n > 0 {
		g.about, g.last = about, last
		g.about.Info.Songs = songs
	}
	return g.about, g.last, n
}

// Info describes the model; Songs are those of all workers.
func (g *Gateway) Info() engine.Info {
	about, _, _ := g.now()
	return about.Info
}

// Defaults returns a request with every default filled in.
func (g *Gateway) Defaults() engine.Request {
	about, _, _ := g.now()
	return about.Defaults.Song()
}

// Workers is the number of workers that can be heard.
func (g *Gateway) Workers() int {
	_, _, n := g.now()
	return n
}

// Usage is the workers' own business.
func (g *Gateway) Usage() engine.Usage { return engine.Usage{} }

// LastProgress is when a worker was last heard of.
func (g *Gateway) LastProgress() time.Time {
	_, last, _ := g.now()
	return last
}

// Busy reports the songs whose callers wait here or at other gateways.
func (g *Gateway) Busy() (waiting, running int) {
	x := g.s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.jobs {
		switch r := &e.record; {
		case !r.Waits:
		case r.Status == Queued:
			waiting++
		case r.Status == Running:
			running++
		}
	}
	return waiting, running
}

// Check asks a worker what is wrong with a request.
func (g *Gateway) Check(r engine.Request) (warnings []string, err error) {
	j, err := g.judge(r)
	if errors.Is(err, errNobody) {
		return nil, nil // whoever takes the song up will tell
	} else if err != nil {
		return nil, err
	}
	return j.Warnings, j.err()
}

// PromptTokens asks a worker for the length of a request's prompt.
func (g *Gateway) PromptTokens(r engine.Request) (int, error) {
	j, err := g.judge(r)
	if err == nil {
		err = j.err()
	}
	return j.Tokens, err
}

var errNobody = fmt.Errorf("%w: there is none", ErrNoWorker)

func (g *Gateway) judge(r engine.Request) (j judgement, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), g.s.o.Silence)
	defer cancel()
	about, _, _ := g.now()
	m, err := g.s.conn.RequestWithContext(ctx, checkSubject+modelToken(about.Info.Name), mustJSON(new(SpecOf(about.Info.Name, r))))
	if errors.Is(err, nats.ErrNoResponders) {
		return j, errNobody
	} else if err != nil {
		return j, fmt.Errorf("%w: %w", ErrNoWorker, err)
	}
	if err := json.Unmarshal(m.Data, &j); err != nil {
		return j, fmt.Errorf("a worker's judgement cannot be read: %w", err)
	}
	return j, nil
}

// SpecOf is a request to an engine of the named model.
func SpecOf(model string, r engine.Request) Spec {
	return Spec{
		Model: model, Input: r.Lyrics, Instructions: r.Instructions, MaxNewTokens: r.MaxFrames, Seed: r.Seed,
		Steps: r.Steps, Guidance: r.Guidance, Instrumental: r.Instrumental, PromptMode: string(r.PromptMode),
	}
}

// Sing makes one song. It ends with ctx, and then returns its cause.
func (g *Gateway) Sing(ctx context.Context, r engine.Request) (*engine.Song, error) {
	about, _, _ := g.now()
	l := &listener{s: g.s, g: g, r: r}
	for {
		song, err := l.listen(ctx, SpecOf(about.Info.Name, r))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, ErrNoAudio) && l.again < g.s.o.Tries {
			l.again++ // the worker died between its song's end and our hearing it
			continue
		}
		return song, err
	}
}

// listener is a caller who waits for a song.
type listener struct {
	s     *Store
	g     *Gateway
	r     engine.Request
	heard int // samples so far
	again int
}

// listen has a song made and hands it on while it comes.
func (l *listener) listen(ctx context.Context, spec Spec) (*engine.Song, error) {
	j, err := l.s.Create(ctx, New{Spec: spec, Waits: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err := l.s.Delete(late, j.ID); err != nil && !errors.Is(err, ErrNotFound) {
			l.s.log.Warn("cannot delete a song that was handed over", "id", j.ID, "error", err)
		}
	}()
	changed, stop := l.s.Watch(j.ID)
	defer stop()
	// Asking keeps the song alive at its worker.
	tick := time.NewTicker(l.s.o.Silence / 4)
	defer tick.Stop()
	for {
		now, there := l.s.index.get(j.ID)
		switch {
		case !there:
			return nil, fmt.Errorf("%w: its worker gave it up", ErrNoAudio)
		case now.Status == Running:
			if err := l.progress(ctx, &now); err != nil {
				return nil, err
			}
		case now.Status == Failed:
			return nil, &FailedError{*now.Failure}
		case now.Status == Done:
			if err := l.hear(ctx, j.ID, now.Song.Samples); err != nil {
				return nil, err
			}
			return now.song(spec.Seed), nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-changed:
		case <-tick.C:
			if since := time.Since(l.g.LastProgress()); since > max(noWorker, 3*l.s.o.Silence) {
				return nil, fmt.Errorf("%w: none has been heard of for %.0f s", ErrNoWorker, since.Seconds())
			}
			// A worker that does not answer is noticed by the queue.
			if err := l.hear(ctx, j.ID, 0); err != nil && !errors.Is(err, errAway) {
				return nil, err
			}
		}
	}
}

func (l *listener) progress(ctx context.Context, j *Job) error {
	p := j.Progress
	if p == nil {
		return nil
	}
	if l.r.Progress != nil {
		l.r.Progress(engine.Progress{
			Stage: p.Stage, Fraction: p.Fraction, Frames: p.Frames, MaxFrames: p.Max,
			Window: p.Window, Windows: p.Windows, Elapsed: p.Elapsed, ETA: p.ETA,
		})
	}
	if p.Samples <= l.heard {
		return nil
	}
	if err := l.hear(ctx, j.ID, p.Samples); err != nil && !errors.Is(err, errAway) {
		return err
	}
	return nil
}

// errAway says that a worker does not answer.
var errAway = fmt.Errorf("%w: its worker does not answer", ErrNoAudio)

// hear takes new samples: all there are, and at least so many.
func (l *listener) hear(ctx context.Context, id string, least int) error {
	for {
		samples, all, _, err := l.s.Live(ctx, id, l.heard)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return errAway
		}
		if n := len(samples[0]); n > 0 {
			l.heard += n
			if err := l.r.Sink(samples); err != nil {
				return err
			}
		} else if all < least {
			return errAway // another try has not come so far yet
		}
		if l.heard >= max(all, least) {
			return nil
		}
		if l.heard >= all {
			return errAway
		}
	}
}

// song is a finished song as an engine tells of it.
func (j *Job) song(seed uint64) *engine.Song {
	g := j.Song
	song := &engine.Song{
		SampleRate: g.SampleRate, Seed: seed, PromptTokens: g.Prompt, Frames: g.Frames,
		EndReason: g.EndReason, Warnings: j.Warnings, RMS: g.RMS, Peak: g.Peak,
	}
	queue := j.Started.Sub(j.Created)
	for _, t := range g.Timings {
		if t.Stage == engine.StageQueue {
			t.Duration += max(queue, 0)
		}
		song.Timings = append(song.Timings, t)
	}
	return song
}
