package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"skald/host/engine"
)

// resting is an engine that is closed when nobody has used it for a while, and opened
// again for the next one who does. What it tells of itself stays known.
type resting struct {
	open     func(context.Context) (*engine.Engine, error)
	after    time.Duration
	log      *slog.Logger
	info     engine.Info
	defaults engine.Request
	closing  context.Context // ends with the server
	stop     context.CancelFunc

	mu      sync.Mutex
	engine  *engine.Engine // nil while it rests
	users   int
	opening chan struct{} // closed when the opening that goes on has ended; nil: none does
	err     error         // of the last one
	timer   *time.Timer
}

// reopenError says why a model that rested could not be loaded again.
type reopenError struct{ err error }

func (e *reopenError) Error() string { return "loading the model again: " + e.err.Error() }
func (e *reopenError) Unwrap() error { return e.err }

func newResting(e *engine.Engine, after time.Duration, log *slog.Logger, open func(context.Context) (*engine.Engine, error)) *resting {
	m := &resting{open: open, after: after, log: log, info: e.Info(), defaults: e.Defaults(), engine: e}
	m.closing, m.stop = context.WithCancel(context.Background())
	m.timer = time.AfterFunc(after, m.rest)
	return m
}

// close ends what goes on and closes the engine.
func (m *resting) close() error {
	m.stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer.Stop()
	for m.opening != nil {
		c := m.opening
		m.mu.Unlock()
		<-c
		m.mu.Lock()
	}
	if m.engine == nil {
		return nil
	}
	e := m.engine
	m.engine = nil
	return e.Close()
}

// rest closes the engine, unless somebody came in between.
func (m *resting) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users > 0 || m.engine == nil {
		return
	}
	err := m.engine.Close()
	m.engine = nil
	debug.FreeOSMemory()
	m.log.Info("model unloaded", "idle", m.after, "error", err)
}

// use returns the engine, after opening it if it rests. done must be called.
func (m *resting) use(ctx context.Context) (e *engine.Engine, done func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users++
	m.timer.Stop()
	for m.engine == nil {
		if m.closing.Err() != nil {
			err = engine.ErrClosed
			break
		}
		if m.opening == nil {
			m.opening = make(chan struct{})
			go m.reopen(m.opening)
		}
		c := m.opening
		m.mu.Unlock()
		select {
		case <-c:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		m.mu.Lock()
		if err == nil && m.engine == nil && m.opening == nil {
			err = m.err
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		m.left()
		return nil, nil, err
	}
	return m.engine, func() { m.mu.Lock(); m.left(); m.mu.Unlock() }, nil
}

// left counts a user less. The mutex is held.
func (m *resting) left() {
	if m.users--; m.users == 0 && m.closing.Err() == nil {
		m.timer.Reset(m.after)
	}
}

// reopen opens the engine for all who wait, also when the first of them has left.
func (m *resting) reopen(done chan struct{}) {
	start := time.Now()
	e, err := m.open(m.closing)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(done)
	m.opening, m.engine = nil, e
	if err != nil {
		m.engine, m.err = nil, &reopenError{err}
		if !errors.Is(err, context.Canceled) {
			m.log.Error("model not loaded again", "error", err)
		}
		return
	}
	if m.users == 0 {
		m.timer.Reset(m.after)
	}
	m.log.Info("model loaded again", "duration", time.Since(start))
}

func (m *resting) Info() engine.Info        { return m.info }
func (m *resting) Defaults() engine.Request { return m.defaults }

// now calls f with the engine unless it rests, without keeping it awake.
func (m *resting) now(f func(*engine.Engine)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine != nil {
		f(m.engine)
	}
}

// Busy counts those who wait for the engine to open as waiting.
func (m *resting) Busy() (waiting, running int) {
	m.mu.Lock()
	waiting = m.users
	m.mu.Unlock()
	m.now(func(e *engine.Engine) { waiting, running = e.Busy() })
	return waiting, running
}

func (m *resting) Usage() (u engine.Usage) {
	m.now(func(e *engine.Engine) { u = e.Usage() })
	return u
}

func (m *resting) LastProgress() (t time.Time) {
	m.now(func(e *engine.Engine) { t = e.LastProgress() })
	return t
}

func (m *resting) loaded() (yes bool) {
	m.now(func(*engine.Engine) { yes = true })
	return yes
}

func (m *resting) Check(r engine.Request) (warnings []string, err error) {
	e, done, err := m.use(m.closing)
	if err != nil {
		return nil, nil // the song will say so
	}
	defer done()
	return e.Check(r)
}

func (m *resting) PromptTokens(r engine.Request) (int, error) {
	e, done, err := m.use(m.closing)
	if err != nil {
		return 0, err
	}
	defer done()
	return e.PromptTokens(r)
}

func (m *resting) Sing(ctx context.Context, r engine.Request) (*engine.Song, error) {
	start := time.Now()
	rested := !m.loaded()
	if rested && r.Progress != nil {
		r.Progress(engine.Progress{Stage: engine.StageLoad, MaxFrames: r.MaxFrames})
	}
	e, done, err := m.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	took := time.Since(start)
	song, err := e.Sing(ctx, r)
	if err != nil {
		return nil, err
	}
	if rested {
		song.Timings = append(song.Timings, engine.Timing{Stage: engine.StageLoad, Duration: took})
	}
	return song, nil
}

// errReopen is the answer when a model that rested could not be loaded again.
func errReopen(err *reopenError) *apiError {
	return errUnavailable("model_unavailable", fmt.Sprintf("the model was unloaded when nobody used it, and %v; try again later", err))
}
