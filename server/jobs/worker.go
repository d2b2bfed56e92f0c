package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"skald/host/audio"
	"skald/host/engine"
)

// WorkerOptions say what a worker can do.
type WorkerOptions struct {
	Name       string // of this worker, for people
	Model      string // whose jobs it takes
	Songs      int    // made at once
	SampleRate int    // of the model
	Metadata   audio.Metadata
	// Sing makes a song: the engine's.
	Sing func(ctx context.Context, r engine.Request) (*engine.Song, error)
	// Explain tells a caller's side of an error, and whether another try may do better.
	Explain func(spec Spec, err error) (f Failure, again bool)
	// Ended hears how every try ended, unless it is nil.
	Ended func(Outcome)
}

// Outcome says how a try ended.
type Outcome string

// The outcomes of tries.
const (
	OutcomeDone      Outcome = "done"
	OutcomeFailed    Outcome = "failed" // for good
	OutcomeAgain     Outcome = "again"  // failed, and is tried again
	OutcomeCancelled Outcome = "cancelled"
	OutcomeGivenBack Outcome = "given_back" // its worker was stopped
	OutcomeLost      Outcome = "lost"       // begun again elsewhere meanwhile
)

// Outcomes lists them.
func Outcomes() []Outcome {
	return []Outcome{OutcomeDone, OutcomeFailed, OutcomeAgain, OutcomeCancelled, OutcomeGivenBack, OutcomeLost}
}

// Worker takes up jobs and makes their songs.
type Worker struct {
	o        WorkerOptions
	s        *Store
	log      *slog.Logger
	consumer jetstream.Consumer
	taking   context.Context // ends when no more jobs are taken
	stop     context.CancelFunc
	singing  context.Context // ends the songs
	cut      context.CancelCauseFunc
	alone    sync.RWMutex // held for writing by a job that may be poison
	running  sync.WaitGroup
}

// ErrStopped is the cause of songs that are given up because their worker stops: their jobs
// begin again later, and it does not count as a try.
var ErrStopped = errors.New("the worker is being stopped")

// Other reasons for which a song is given up.
var (
	errCancelled = errors.New("the job was cancelled")
	errStale     = errors.New("the job was begun again elsewhere")
	errPoison    = errors.New("the job was tried too often")
)

// Work starts a worker.
func (s *Store) Work(ctx context.Context, o WorkerOptions) (*Worker, error) {
	w := &Worker{o: o, s: s, log: s.log}
	token := modelToken(o.Model)
	var err error
	w.consumer, err = s.queue.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "sing-" + token, FilterSubject: queueSubject + token + ".*",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.o.Silence, MaxAckPending: -1, MaxWaiting: 4096,
	})
	if err != nil {
		return nil, fmt.Errorf("queue of %s: %w", o.Model, err)
	}
	w.taking, w.stop = context.WithCancel(context.Background())
	w.singing, w.cut = context.WithCancelCause(context.Background())
	for range o.Songs {
		w.running.Go(w.take)
	}
	return w, nil
}

// Stop takes no more jobs, waits for the running ones until ctx ends, and then gives these
// back to the queue.
func (w *Worker) Stop(ctx context.Context) {
	w.stop()
	defer context.AfterFunc(ctx, func() { w.cut(ErrStopped) })()
	w.running.Wait()
	w.cut(ErrStopped)
}

// take makes one song after another.
func (w *Worker) take() {
	for w.taking.Err() == nil {
		m, err := w.consumer.Next(jetstream.FetchContext(w.taking))
		switch {
		case err == nil:
			w.make(m)
		case w.taking.Err() == nil && !errors.Is(err, jetstream.ErrNoMessages) && !errors.Is(err, context.DeadlineExceeded):
			w.log.Warn("cannot take a job from the queue; trying again", "error", err)
			select {
			case <-time.After(time.Second):
			case <-w.taking.Done():
			}
		}
	}
}

// make makes the song of a message from the queue, and answers for the message.
func (w *Worker) make(m jetstream.Msg) {
	id := m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:]
	log := w.log.With("job", id)
	t := &try{w: w, id: id, log: log, message: m}
	t.ctx, t.cancel = context.WithCancelCause(w.singing)
	defer t.cancel(nil)
	beating := make(chan struct{})
	beats := sync.WaitGroup{}
	beats.Go(func() { t.beat(beating) })
	err := t.run()
	close(beating)
	beats.Wait()

	// Also when the songs are being cut: this is the store's business.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), storeTimeout)
	defer cancel()
	t.settle(ctx, err)
}

// storeTimeout bounds what a worker has to say to the store about one job.
const storeTimeout = time.Minute

// settle records how a try ended and answers for the message.
func (t *try) settle(ctx context.Context, err error) {
	var answer error
	outcome := OutcomeDone
	switch {
	case err == nil:
		t.log.Info("job done", "try", t.number, "duration", time.Since(t.began))
		answer = t.message.DoubleAck(ctx)
	case errors.Is(err, errPoison):
		outcome, answer = OutcomeFailed, t.message.DoubleAck(ctx)
	case errors.Is(err, errCancelled), errors.Is(err, ErrEnded), errors.Is(err, ErrNotFound):
		outcome, answer = OutcomeCancelled, t.message.DoubleAck(ctx)
	case errors.Is(err, errStale):
		outcome = OutcomeLost
		t.log.Warn("song given up", "error", err)
	case errors.Is(err, ErrStopped), errors.Is(err, engine.ErrClosed):
		t.release(ctx)
		outcome, answer = OutcomeGivenBack, t.message.Nak()
	default:
		outcome, answer = t.fail(ctx, err)
	}
	if t.w.o.Ended != nil {
		t.w.o.Ended(outcome)
	}
	if answer != nil {
		t.log.Warn("the queue did not take an answer", "error", answer)
	}
}

// release gives a job back that is not to blame.
func (t *try) release(ctx context.Context) {
	_, err := t.w.s.update(ctx, t.id, t.mine(func(r *Record) {
		r.Status, r.Tries, r.Worker, r.Started = Queued, r.Tries-1, "", time.Time{}
	}))
	if err != nil && !errors.Is(err, errStale) && !errors.Is(err, ErrNotFound) {
		t.log.Warn("cannot give a job back", "error", err)
	}
}

// fail notes why a try failed. The job waits for another one, or has failed.
func (t *try) fail(ctx context.Context, err error) (outcome Outcome, answer error) {
	f, again := t.w.o.Explain(t.spec, err)
	r, updateErr := t.w.s.update(ctx, t.id, t.mine(func(r *Record) {
		r.Failure = &f
		if again && r.Tries < t.w.s.o.Tries {
			r.Status, r.Worker, r.Started = Queued, "", time.Time{}
			return
		}
		r.Status, r.Ended = Failed, t.w.s.o.now().UTC()
	}))
	t.log.Error("song failed", "try", t.number, "error", err)
	switch {
	case updateErr != nil && !errors.Is(updateErr, errStale) && !errors.Is(updateErr, ErrNotFound):
		return OutcomeAgain, updateErr // the message comes again
	case updateErr == nil && r.Status == Queued:
		return OutcomeAgain, t.message.NakWithDelay(time.Second << min(r.Tries, 5))
	}
	return OutcomeFailed, t.message.DoubleAck(ctx)
}

// mine is a change of a record that is made only while the try is the job's newest.
func (t *try) mine(change func(*Record)) func(*Record) error {
	return func(r *Record) error {
		if r.Status != Running || r.Tries != t.number {
			return errStale
		}
		change(r)
		return nil
	}
}
