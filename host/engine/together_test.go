package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skald/host/engine"
)

// mixed returns requests of different lengths, prompts, settings and generators.
func mixed(e *engine.Engine, n int) []engine.Request {
	var out []engine.Request
	for i := range n {
		r := short(e)
		r.Seed = uint64(100 + i)
		r.MaxFrames = 3 + 7*i%40
		r.Steps = 1 + i%3
		r.Lyrics += strings.Repeat("\n[verse]", i%5)
		if i%4 == 3 {
			r.RNG = engine.Torch
		}
		if i%5 == 4 {
			r.Guidance = 1
		}
		out = append(out, r)
	}
	return out
}

// TestSongsDoNotHearEachOther sings songs together, more than there are places for, and
// compares each with the same song alone.
func TestSongsDoNotHearEachOther(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	requests := mixed(e, 16)
	alone := make([]*engine.Song, len(requests))
	for i, r := range requests {
		alone[i] = sing(t, e, r)
	}
	together := make([]*engine.Song, len(requests))
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			var err error
			if together[i], err = e.Sing(context.Background(), r); err != nil {
				t.Errorf("song %d: %v", i, err)
			}
		})
	}
	all.Wait()
	for i := range requests {
		if together[i] == nil || !sameSamples(alone[i], together[i]) || alone[i].Frames != together[i].Frames {
			t.Errorf("song %d differs when %d others are sung with it", i, len(requests)-1)
		}
	}
	if waiting, running := e.Busy(); waiting != 0 || running != 0 {
		t.Errorf("%d waiting, %d running after the last song", waiting, running)
	}
	t.Logf("%d songs compared", len(requests))
}

// TestStreamedEqualsWhole sends each window to a sink: the same samples, the first of
// them while frames are still being sung.
func TestStreamedEqualsWhole(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	r := short(e)
	r.MaxFrames, r.Steps = 430, 1
	whole := sing(t, e, r)
	var streamed [2][]float32
	pieces, framesAtFirst, frames := 0, 0, 0
	r.Progress = func(p engine.Progress) {
		if p.Stage == engine.StageAR {
			frames = p.Frames
		}
	}
	var lock sync.Mutex
	progress := r.Progress
	r.Progress = func(p engine.Progress) { lock.Lock(); defer lock.Unlock(); progress(p) }
	r.Sink = func(x [2][]float32) error {
		lock.Lock()
		defer lock.Unlock()
		if pieces++; pieces == 1 {
			framesAtFirst = frames
		}
		for c := range x {
			streamed[c] = append(streamed[c], x[c]...)
		}
		return nil
	}
	song := sing(t, e, r)
	if !slices.Equal(streamed[0], whole.Samples[0]) || !slices.Equal(streamed[1], whole.Samples[1]) {
		t.Error("the streamed samples differ from the whole song's")
	}
	if len(song.Samples[0]) != 0 || math.Abs(song.RMS-whole.RMS) > 1e-9 || song.Peak != whole.Peak {
		t.Errorf("streamed song: %d samples kept, RMS %v, peak %v; whole: RMS %v, peak %v", len(song.Samples[0]), song.RMS, song.Peak, whole.RMS, whole.Peak)
	}
	if pieces < 2 || framesAtFirst < 201 {
		t.Errorf("%d pieces, the first after %d frames", pieces, framesAtFirst)
	}
	t.Logf("%d frames in %d pieces, the first after %d frames", song.Frames, pieces, framesAtFirst)
}

func TestSinkErrorEndsTheSong(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	full := errors.New("no space left")
	r := short(e)
	r.Sink = func([2][]float32) error { return full }
	if _, err := e.Sing(context.Background(), r); !errors.Is(err, full) {
		t.Errorf("error %v, expected the sink's", err)
	}
	sing(t, e, short(e))
}

// TestSlowSinkDelaysNobody blocks one listener while another song is sung.
func TestSlowSinkDelaysNobody(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	blocked, release := make(chan struct{}), make(chan struct{})
	slow := short(e)
	slow.Sink = func([2][]float32) error { blocked <- struct{}{}; <-release; return nil }
	done := make(chan error, 1)
	go func() { _, err := e.Sing(context.Background(), slow); done <- err }()
	<-blocked
	sing(t, e, short(e))
	release <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFinishKeepsWhatWasSung(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	r := short(e)
	r.MaxFrames = 60
	whole := sing(t, e, r)
	finish := make(chan struct{})
	var once sync.Once
	r.Finish = finish
	r.Progress = func(p engine.Progress) {
		if p.Frames == 20 {
			once.Do(func() { close(finish) })
		}
	}
	song := sing(t, e, r)
	if song.EndReason != engine.EndFinished || song.Frames < 20 || song.Frames > 22 {
		t.Errorf("finished at frame 20: %d frames, ended by %s", song.Frames, song.EndReason)
	}
	if whole.Frames != 60 {
		t.Errorf("the whole song has %d frames", whole.Frames)
	}
	r.MaxFrames = song.Frames
	r.Finish, r.Progress = nil, nil
	if !sameSamples(song, sing(t, e, r)) {
		t.Error("the finished song differs from one of that length")
	}
	early := make(chan struct{})
	close(early)
	r.Finish = early
	if _, err := e.Sing(context.Background(), r); err == nil || !strings.Contains(err.Error(), "before its first frame") {
		t.Errorf("finished at once: %v", err)
	}
}

// TestManyComeAndGo cancels songs at random moments while others are sung.
func TestManyComeAndGo(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	keeper := short(e)
	want := sing(t, e, keeper)
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			if i%3 == 0 {
				song, err := e.Sing(context.Background(), keeper)
				if err != nil || !sameSamples(want, song) {
					t.Errorf("song %d: error %v, or other samples", i, err)
				}
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*i)*time.Millisecond)
			defer cancel()
			r := keeper
			r.Seed, r.MaxFrames = uint64(i), 250
			if _, err := e.Sing(ctx, r); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("song %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if waiting, running := e.Busy(); waiting != 0 || running != 0 {
		t.Errorf("%d waiting, %d running after the last song", waiting, running)
	}
	if song := sing(t, e, keeper); !sameSamples(want, song) {
		t.Error("afterwards the same request gives other samples")
	}
}

// TestUsage watches the blocks of the cache come and go.
func TestUsage(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	idle, most := e.Usage(), 0
	r := short(e)
	r.Progress = func(engine.Progress) { most = max(most, e.Usage().KVBlocksTaken) }
	sing(t, e, r)
	if idle.KVBlocksTaken != 0 || most == 0 || most > idle.KVBlocks {
		t.Errorf("blocks taken: %d before a song, %d during it, of %d", idle.KVBlocksTaken, most, idle.KVBlocks)
	}
	// Those of the common prompt stay.
	for deadline := time.Now().Add(10 * time.Second); e.Usage().KVBlocksTaken >= most; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d blocks stay taken", e.Usage().KVBlocksTaken)
		}
	}
	if m := idle.Memory; m.Total <= 0 || m.Free <= 0 {
		t.Errorf("memory %+v", m)
	}
	t.Logf("blocks taken: %d during a song, %d after it, of %d", most, e.Usage().KVBlocksTaken, idle.KVBlocks)
}
