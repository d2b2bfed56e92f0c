package jobs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"skald/host/engine"
)

// tellEvery bounds how often progress is told of, but for new audio and new stages.
const tellEvery = 100 * time.Millisecond

// tell is the song's Progress.
func (t *try) tell(p engine.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := &t.progress
	percent := before.Percent
	if p.ETA > 0 {
		percent = max(percent, 100*p.Elapsed.Seconds()/(p.Elapsed+p.ETA).Seconds())
	}
	if p.Stage == engine.StageEncode {
		percent = 100
	}
	news := p.Stage != before.Stage
	*before = Progress{
		Job: t.id, Try: t.number, Sequence: before.Sequence, Stage: p.Stage, Fraction: p.Fraction,
		Frames: max(p.Frames, before.Frames), Max: p.MaxFrames, Window: p.Window, Windows: p.Windows,
		Samples: len(t.samples[0]), Rate: t.w.o.SampleRate, Elapsed: p.Elapsed, ETA: p.ETA, Percent: percent,
	}
	if t.finishAt > 0 && before.Frames >= t.finishAt {
		t.finished.Do(func() { close(t.finish) })
	}
	if news || time.Since(t.told) >= tellEvery {
		t.publish()
	}
}

// publish tells everybody how far the song is. The mutex is held.
func (t *try) publish() {
	t.told = time.Now()
	t.progress.Sequence++
	// Who misses it sees the next one.
	_ = t.w.s.conn.Publish(tellSubject+t.id, mustJSON(&t.progress))
}

// hear takes new samples.
func (t *try) hear(samples [2][]float32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range samples {
		t.samples[c] = append(t.samples[c], samples[c]...)
	}
	t.progress.Samples = len(t.samples[0])
	t.publish()
}

func (t *try) heard() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.samples[0])
}

// ask is a question for a running song's samples.
type ask struct {
	From int `json:"from"`
}

// Headers of the answer: the samples there are, and their rate. Its data are samples from
// the one asked for on, left and right in turn, as 32-bit floats.
const (
	headerSamples = "Skald-Samples"
	headerRate    = "Skald-Rate"
	maxLive       = 1 << 16 // samples of each channel in an answer
)

// serveLive answers for the song while it is made.
func (t *try) serveLive() (*nats.Subscription, error) {
	return t.w.s.conn.Subscribe(liveSubject+t.id, func(m *nats.Msg) {
		var q ask
		if err := json.Unmarshal(m.Data, &q); err != nil || q.From < 0 {
			return
		}
		t.mu.Lock()
		t.lastAsk = time.Now()
		n := len(t.samples[0])
		from := min(q.From, n)
		left, right := t.samples[0][from:min(n, from+maxLive)], t.samples[1][from:min(n, from+maxLive)]
		t.mu.Unlock()
		reply := nats.NewMsg(m.Reply)
		reply.Header.Set(headerSamples, strconv.Itoa(n))
		reply.Header.Set(headerRate, strconv.Itoa(t.w.o.SampleRate))
		reply.Data = make([]byte, 0, 8*len(left))
		for i := range left {
			reply.Data = binary.LittleEndian.AppendUint32(reply.Data, math.Float32bits(left[i]))
			reply.Data = binary.LittleEndian.AppendUint32(reply.Data, math.Float32bits(right[i]))
		}
		_ = m.RespondMsg(reply) // who missed it asks again
	})
}

// Live returns the samples of a running song from one on, at most maxLive, with the number
// there are. ErrNoAudio when no worker answers.
func (s *Store) Live(ctx context.Context, id string, from int) (samples [2][]float32, all, rate int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Silence)
	defer cancel()
	m, err := s.conn.RequestWithContext(ctx, liveSubject+id, mustJSON(&ask{from}))
	if errors.Is(err, nats.ErrNoResponders) {
		return samples, 0, 0, ErrNoAudio
	} else if err != nil {
		return samples, 0, 0, err
	}
	all, err = strconv.Atoi(m.Header.Get(headerSamples))
	if err == nil {
		rate, err = strconv.Atoi(m.Header.Get(headerRate))
	}
	if n := len(m.Data) / 8; err != nil || len(m.Data)%8 != 0 || n > maxLive || rate <= 0 {
		return samples, 0, 0, fmt.Errorf("an answer about %s cannot be read: %w", id, err)
	}
	for i := 0; i < len(m.Data); i += 8 {
		for c := range samples {
			samples[c] = append(samples[c], math.Float32frombits(binary.LittleEndian.Uint32(m.Data[i+4*c:])))
		}
	}
	return samples, all, rate, nil
}

// handOver keeps the samples of a song whose caller waits for it until he has them all and
// has removed the job, or is gone.
func (t *try) handOver() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		t.mu.Lock()
		gone := time.Since(t.lastAsk) > t.w.s.o.Silence
		t.mu.Unlock()
		if _, there := t.w.s.index.get(t.id); !there || gone || t.ctx.Err() != nil {
			return
		}
		<-tick.C
	}
}
