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
	// About, unless nil, lets gateways know the model: what it is, what an absent field
	// means, and what is wrong with a request.
	About *About
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
	o       WorkerOptions
	s       *Store
	log     *slog.Logger
	lines   []jetstream.Consumer // the more urgent first
	slots   chan struct{}        // a token for each song that is being made
	taking  context.Context      // ends when no more jobs are taken
	stop    context.CancelFunc
	singing context.Context // ends the songs
	cut     context.CancelCauseFunc
	alone   sync.RWMutex // held for writing by a job that may be poison
	running sync.WaitGroup
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
	w := &Worker{o: o, s: s, log: s.log, slots: make(chan struct{}, o.Songs)}
	token := modelToken(o.Model)
	for _, line := range []string{lineNow, lineJob} {
		c, err := s.queue.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: "sing-" + token + strings.ReplaceAll(line, ".", "-"), FilterSubject: queueSubject + token + line + "*",
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.o.Silence, MaxAckPending: -1,
		})
		if err != nil {
			return nil, fmt.Errorf("queue of %s: %w", o.Model, err)
		}
		w.lines = append(w.lines, c)
	}
	w.taking, w.stop = context.WithCancel(context.Background())
	w.singing, w.cut = context.WithCancelCause(context.Background())
	if o.About != nil {
		if err := w.introduce(); err != nil {
			w.stop()
			return nil, err
		}
	}
	w.running.Go(w.take)
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

// lookEvery is how often a worker with nothing to do looks for a job.
const lookEvery = 100 * time.Millisecond

// take takes up jobs while there are fewer songs in the making than may be.
func (w *Worker) take() {
	for {
		select {
		case w.slots <- struct{}{}:
		case <-w.taking.Done():
			return
		}
		m, err := w.next()
		if m != nil {
			w.running.Go(func() {
				w.make(m)
				<-w.slots
			})
			continue
		}
		<-w.slots
		pause := lookEvery
		if err != nil {
			pause = time.Second
			w.log.Warn("cannot take a job from the queue; trying again", "error", err)
		}
		select {
		case <-time.After(pause):
		case <-w.taking.Done():
			return
		}
	}
}

// next is the first message of the most urgent line; nil if there is none.
func (w *Worker) next() (jetstream.Msg, error) {
	for _, line := range w.lines {
		if w.taking.Err() != nil {
			return nil, nil
		}
		batch, err := line.FetchNoWait(1)
		if err != nil {
			return nil, err
		}
		for m := range batch.Messages() {
			return m, nil
		}
		if err := batch.Error(); err != nil && !errors.Is(err, jetstream.ErrNoMessages) {
			return nil, err
		}
	}
	return nil, nil
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
	case errors.Is(err, ErrNotFound) && t.number == 0:
		t.log.Error("a job in the queue has no record: it was deleted just now, or the disk has lost it")
		outcome, answer = OutcomeCancelled, t.message.DoubleAck(ctx)
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
