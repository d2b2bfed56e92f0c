package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"skald/host/engine"
)

// About is what a worker tells of its model.
type About struct {
	Info     engine.Info
	Defaults Spec // what an absent field means
	Check    func(engine.Request) (warnings []string, err error)
	Tokens   func(engine.Request) (int, error) // of the prompt
}

// hello is what a worker says again and again.
type hello struct {
	Name     string      `json:"name"`
	Info     engine.Info `json:"info"`
	Defaults Spec        `json:"defaults"`
	Leaving  bool        `json:"leaving,omitempty"` // takes no more jobs
}

// judgement is the answer to a question what is wrong with a request.
type judgement struct {
	Warnings []string              `json:"warnings"`
	Faults   []engine.RequestError `json:"faults"`
	Error    string                `json:"error,omitempty"` // what is no fault of the request
	Tokens   int                   `json:"tokens"`          // of the prompt, of a request without a fault
}

// introduce lets gateways know of the worker until it is stopped.
func (w *Worker) introduce() error {
	token := modelToken(w.o.Model)
	answers, err := w.s.conn.QueueSubscribe(checkSubject+token, "workers", func(m *nats.Msg) {
		var spec Spec
		if err := json.Unmarshal(m.Data, &spec); err != nil {
			return
		}
		_ = m.Respond(mustJSON(w.o.About.judge(spec))) // who missed it asks again
	})
	if err != nil {
		return err
	}
	say := func(leaving bool) {
		// Who misses it hears the next one.
		_ = w.s.conn.Publish(helloSubject+token, mustJSON(&hello{w.o.Name, w.o.About.Info, w.o.About.Defaults, leaving}))
	}
	say(false)
	w.running.Go(func() {
		tick := time.NewTicker(w.s.o.Silence / 4)
		defer tick.Stop()
		for {
			select {
			case <-w.taking.Done():
				_ = answers.Unsubscribe()
				say(true)
				return
			case <-tick.C:
				say(false)
			}
		}
	})
	return nil
}

func (a *About) judge(spec Spec) *judgement {
	warnings, err := a.Check(spec.Song())
	j := &judgement{Warnings: warnings}
	for _, e := range flatten(err) {
		if fault, ok := errors.AsType[*engine.RequestError](e); ok {
			j.Faults = append(j.Faults, *fault)
		} else {
			j.Error = e.Error()
		}
	}
	if err == nil {
		if j.Tokens, err = a.Tokens(spec.Song()); err != nil {
			j.Error = err.Error()
		}
	}
	return j
}

// flatten lists the errors that errors.Join put together.
func flatten(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

// err is the judgement as the engine gave it.
func (j *judgement) err() error {
	var all []error
	for i := range j.Faults {
		all = append(all, &j.Faults[i])
	}
	if j.Error != "" {
		all = append(all, fmt.Errorf("a worker: %s", j.Error))
	}
	return errors.Join(all...)
}

// fleet knows the workers that can be heard.
type fleet struct {
	silence time.Duration
	mu      sync.Mutex
	workers map[string]heard // by name
	news    chan struct{}    // holds a token after a new worker
}

type heard struct {
	hello
	at time.Time
}

func newFleet(s *Store) (*fleet, error) {
	f := &fleet{silence: s.o.Silence, workers: map[string]heard{}, news: make(chan struct{}, 1)}
	_, err := s.conn.Subscribe(helloSubject+"*", func(m *nats.Msg) {
		var h hello
		if json.Unmarshal(m.Data, &h) != nil || h.Name == "" {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if h.Leaving {
			delete(f.workers, h.Name)
			return
		}
		f.workers[h.Name] = heard{h, time.Now()}
		select {
		case f.news <- struct{}{}:
		default:
		}
	})
	return f, err
}

// model tells of the workers of a model, or of any if it is "": what the newest says of
// itself, how many songs all make at once, and when one was last heard of.
func (f *fleet) model(name string) (about hello, workers, songs int, last time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, w := range f.workers {
		if time.Since(w.at) > 2*f.silence {
			delete(f.workers, id)
			continue
		}
		if name == "" {
			name = w.Info.Name
		}
		if w.Info.Name != name {
			continue
		}
		workers, songs = workers+1, songs+w.Info.Songs
		if w.at.After(last) {
			about, last = w.hello, w.at
		}
	}
	return about, workers, songs, last
}
