package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"skald/host/audio"
	"skald/host/engine"
)

// try is one attempt of a worker to make a job's song.
type try struct {
	w       *Worker
	id      string
	log     *slog.Logger
	message jetstream.Msg
	ctx     context.Context
	cancel  context.CancelCauseFunc
	began   time.Time
	number  int
	spec    Spec
	waits   bool

	finish   chan struct{} // closed to end the song early
	finished sync.Once

	mu       sync.Mutex
	finishAt int // frames; 0: not
	progress Progress
	told     time.Time
	samples  [2][]float32 // so far
	lastAsk  time.Time    // when somebody last asked for samples
}

// beat keeps the message ours until done is closed, and ends a song that nobody waits for
// any more.
func (t *try) beat(done <-chan struct{}) {
	tick := time.NewTicker(t.w.s.o.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if err := t.message.InProgress(); err != nil {
			t.log.Debug("no sign of life could be given", "error", err)
		}
		t.mu.Lock()
		abandoned := t.waits && time.Since(t.lastAsk) > t.w.s.o.Silence
		t.mu.Unlock()
		if abandoned {
			if err := t.w.s.Delete(t.ctx, t.id); err == nil {
				t.log.Info("nobody waits for the song any more")
			}
		}
	}
}

// run makes the song and stores it.
func (t *try) run() error {
	t.began, t.finish = time.Now(), make(chan struct{})
	t.lastAsk = t.began
	changed, unwatch := t.w.s.Watch(t.id)
	defer unwatch()
	record, err := t.start(t.ctx)
	if err != nil {
		return err
	}
	t.waits = record.Waits
	if record.Tries > 1 { // the one before may have ended its worker
		t.w.alone.Lock()
		defer t.w.alone.Unlock()
	} else {
		t.w.alone.RLock()
		defer t.w.alone.RUnlock()
	}
	watching := sync.WaitGroup{}
	watched, stop := context.WithCancel(t.ctx)
	defer watching.Wait()
	defer stop()
	t.look()
	watching.Go(func() {
		for {
			select {
			case <-changed:
				t.look()
			case <-watched.Done():
				return
			}
		}
	})
	if t.spec, err = t.w.s.Spec(t.ctx, t.id); err != nil {
		return t.why(fmt.Errorf("the job's request is lost: %w", err))
	}
	live, err := t.serveLive()
	if err != nil {
		return t.why(err)
	}
	song, err := t.sing()
	if err != nil {
		_ = live.Unsubscribe()
		return t.why(err)
	}
	err = t.why(t.store(song))
	if t.waits && err == nil {
		t.handOver()
	}
	_ = live.Unsubscribe()
	return err
}

// why prefers what ended the try to what became of it.
func (t *try) why(err error) error {
	if err != nil && t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return err
}

// start notes that a worker has taken the job up.
func (t *try) start(ctx context.Context) (Record, error) {
	s := t.w.s
	poison := false
	r, err := s.update(ctx, t.id, func(r *Record) error {
		poison = false
		switch {
		case r.Status.Ended():
			return ErrEnded
		case r.Tries >= s.o.Tries:
			poison = true
			r.Status, r.Ended = Failed, s.o.now().UTC()
			last := ""
			if r.Failure != nil {
				last = "; last: " + r.Failure.Message
			}
			r.Failure = &Failure{Code: "too_many_tries", Message: fmt.Sprintf(
				"the server or worker that made the song stopped %d times before it was done; it is not tried again%s", r.Tries, last),
				Type: "server_error", Status: 500, NoRetry: true}
			return nil
		}
		r.Status, r.Started, r.Worker = Running, s.o.now().UTC(), t.w.o.Name
		r.Tries++
		return nil
	})
	if err != nil {
		return r, err
	}
	if poison {
		t.log.Error("job given up", "tries", r.Tries)
		return r, errPoison
	}
	t.number = r.Tries
	t.log.Info("job begun", "try", t.number, "worker", t.w.o.Name)
	return r, nil
}

// look sees what was done to the record.
func (t *try) look() {
	j, ok := t.w.s.index.get(t.id)
	switch {
	case !ok || j.Status == Cancelled:
		t.cancel(errCancelled)
	case j.Tries > t.number || j.Tries == t.number && j.Status != Running:
		if j.Status != Done { // which is our own doing
			t.cancel(errStale)
		}
	case j.FinishAt != 0:
		t.mu.Lock()
		t.finishAt = max(j.FinishAt, 1)
		t.mu.Unlock()
		t.finishIfReached()
	}
}

func (t *try) finishIfReached() {
	t.mu.Lock()
	now := t.finishAt > 0 && t.progress.Frames >= t.finishAt
	t.mu.Unlock()
	if now {
		t.finished.Do(func() { close(t.finish) })
	}
}

// made is a song with its bytes.
type made struct {
	song *engine.Song
	flac audio.Buffer
	pcm  string // digest
}

// sing makes the song, and encodes it meanwhile.
func (t *try) sing() (*made, error) {
	r := t.spec.Song()
	if t.spec.SourceJob != "" {
		var err error
		if r.Replay, err = t.w.s.replay(t.ctx, t.id); err != nil {
			return nil, err
		}
	}
	m := &made{}
	metadata := t.w.o.Metadata
	metadata.Seed = r.Seed
	e, err := audio.NewEncoder(&m.flac, audio.EncoderConfig{
		Container: audio.FLAC, Channels: 2, InputRate: t.w.o.SampleRate, Metadata: &metadata,
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	sum := sha256.New()
	r.Finish, r.Progress = t.finish, t.tell
	r.Sink = func(samples [2][]float32) error {
		t.hear(samples)
		if t.waits {
			return nil
		}
		if err := addPCM(sum, samples); err != nil {
			return err
		}
		return e.Write(samples[:]...)
	}
	if m.song, err = t.w.o.Sing(t.ctx, r); err != nil {
		return nil, err
	}
	m.pcm = hex.EncodeToString(sum.Sum(nil))
	return m, e.Close()
}

func addPCM(sum hash.Hash, samples [2][]float32) error {
	b, err := audio.AppendSamples(nil, audio.PCM16, samples[:]...)
	sum.Write(b)
	return err
}

// store keeps the song, and then says so, unless the job is no longer ours.
func (t *try) store(m *made) error {
	t.tell(engine.Progress{Stage: engine.StageEncode, Frames: m.song.Frames, MaxFrames: m.song.Frames})
	ctx, cancel := context.WithTimeout(t.ctx, storeTimeout)
	defer cancel()
	object := objectOf(t.id, t.number)
	s := t.w.s
	if !t.waits {
		_, err := s.songs.Put(ctx, jetstream.ObjectMeta{Name: object}, bytes.NewReader(m.flac.Bytes()))
		if err == nil {
			_, err = s.songs.PutBytes(ctx, codesOf(object), encodeCodes(m.song))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
	}
	_, err := s.update(ctx, t.id, t.mine(func(r *Record) {
		r.Status, r.Ended, r.Failure, r.Warnings = Done, s.o.now().UTC(), nil, m.song.Warnings
		r.Song = &Song{
			Bytes: int64(len(m.flac.Bytes())), Samples: t.heard(), Object: object,
			SampleRate: t.w.o.SampleRate, Frames: m.song.Frames, EndReason: m.song.EndReason, Prompt: m.song.PromptTokens,
			RMS: m.song.RMS, Peak: m.song.Peak, Timings: m.song.Timings, SHA256: m.pcm,
		}
	}))
	if err == nil {
		return nil
	}
	if !t.waits {
		s.removeObject(context.WithoutCancel(ctx), object)
		s.removeObject(context.WithoutCancel(ctx), codesOf(object))
	}
	if !errors.Is(err, errStale) && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %w", errStore, err)
	}
	return err
}

// errStore is the failure to store a song that was made.
var errStore = errors.New("the song could not be stored")

// IsStoreError tells whether a song was made and could not be stored.
func IsStoreError(err error) bool { return errors.Is(err, errStore) }
