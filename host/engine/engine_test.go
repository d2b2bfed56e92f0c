package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skald/host/engine"
	"skald/host/refdata"
)

// short is a request for a few frames of the built-in model.
func short(e *engine.Engine) engine.Request {
	r := e.Defaults()
	r.Lyrics, r.Instructions = "[intro]\n[verse]\n[chorus]", "fast happy piano with drums"
	r.MaxFrames, r.Steps = 12, 2
	return r
}

func sing(t testing.TB, e *engine.Engine, r engine.Request) *engine.Song {
	t.Helper()
	song, err := e.Sing(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return song
}

func sameSamples(a, b *engine.Song) bool {
	return slices.Equal(a.Samples[0], b.Samples[0]) && slices.Equal(a.Samples[1], b.Samples[1])
}

func TestSameRequestSameBytes(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	r := short(e)
	r.Seed = 7
	first := sing(t, e, r)
	other := r
	other.Lyrics = "[intro]\n[verse]\n[verse]\n[solo]\n[chorus]\n[outro]" // a longer prompt grows the shared prefix
	other.Seed = 8
	different := sing(t, e, other)
	if sameSamples(first, different) {
		t.Error("two requests with different seeds and lyrics gave the same song")
	}
	if !sameSamples(first, sing(t, e, r)) {
		t.Error("the same request gave other samples after another song")
	}
	one, err := engine.Open(context.Background(), engine.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if !sameSamples(first, sing(t, one, r)) {
		t.Error("the same request gave other samples with one thread in a new engine")
	}
}

func TestSongDescribesItself(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	var seen []engine.Progress
	r := short(e)
	r.Progress = func(p engine.Progress) { seen = append(seen, p) }
	song := sing(t, e, r)
	if song.Frames != 12 || song.EndReason != engine.EndLength || song.SampleRate != 44100 || song.Peak <= 0 || song.RMS <= 0 {
		t.Errorf("song %+v", song)
	}
	if !strings.Contains(strings.Join(song.Warnings, "\n"), "demonstration") {
		t.Errorf("warnings %q do not say that this is the demonstration model", song.Warnings)
	}
	var order []engine.Stage
	for _, p := range seen {
		if len(order) == 0 || order[len(order)-1] != p.Stage {
			order = append(order, p.Stage)
		}
		if p.Fraction < 0 || p.Fraction > 1 {
			t.Errorf("fraction %v in %s", p.Fraction, p.Stage)
		}
	}
	if want := []engine.Stage{engine.StagePrompt, engine.StageAR, engine.StageFlow, engine.StageVocoder}; !slices.Equal(order, want) {
		t.Errorf("stages in order %v, expected %v", order, want)
	}
	var total time.Duration
	for _, x := range song.Timings {
		total += x.Duration
	}
	if len(song.Timings) != 5 || total <= 0 {
		t.Errorf("timings %v", song.Timings)
	}
}

// TestCancelIsPrompt ends songs in every stage and sings another at once.
func TestCancelIsPrompt(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	want := sing(t, e, short(e))
	cause := errors.New("the listener left")
	for _, stage := range []engine.Stage{engine.StagePrompt, engine.StageAR, engine.StageFlow, engine.StageVocoder} {
		ctx, cancel := context.WithCancelCause(context.Background())
		after := 0
		r := short(e)
		r.MaxFrames = 60
		r.Progress = func(p engine.Progress) {
			if ctx.Err() != nil {
				after++
			} else if p.Stage == stage {
				cancel(cause)
			}
		}
		_, err := e.Sing(ctx, r)
		if !errors.Is(err, cause) {
			t.Errorf("cancelled in %s: error %v, expected the cause", stage, err)
		}
		if after > 1 {
			t.Errorf("cancelled in %s: %d more frames, steps or blocks, expected at most one", stage, after)
		}
		if waiting, running := e.Busy(); waiting != 0 || running != 0 {
			t.Errorf("cancelled in %s: %d waiting, %d running", stage, waiting, running)
		}
		if !sameSamples(want, sing(t, e, short(e))) {
			t.Errorf("after a cancel in %s the next song differs", stage)
		}
	}
}

func TestQueuedSongsCanLeave(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r := short(e)
	r.Progress = func(engine.Progress) {
		once.Do(func() { close(started); <-release })
	}
	first := make(chan error, 1)
	go func() { _, err := e.Sing(context.Background(), r); first <- err }()
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	second := make(chan error, 1)
	go func() { _, err := e.Sing(ctx, short(e)); second <- err }()
	for waiting, _ := e.Busy(); waiting == 0; waiting, _ = e.Busy() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("a queued song that left: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestCloseEndsTheRunningSong(t *testing.T) {
	e := open(t, "", "")
	r := short(e)
	r.MaxFrames = 500
	started := make(chan struct{})
	var once sync.Once
	r.Progress = func(engine.Progress) { once.Do(func() { close(started) }) }
	done := make(chan error, 1)
	go func() { _, err := e.Sing(context.Background(), r); done <- err }()
	<-started
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, engine.ErrClosed) {
		t.Errorf("the running song ended with %v, expected %v", err, engine.ErrClosed)
	}
	if _, err := e.Sing(context.Background(), r); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a song after Close ended with %v", err)
	}
}

func TestBadRequestsNameTheirFields(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	r := short(e)
	r.Lyrics, r.Instructions = " \n", "\u00a0"
	r.MaxFrames, r.Steps, r.Guidance = 0, 201, math.NaN()
	r.RNG, r.PromptMode = "dice", "loose"
	_, err := e.Check(r)
	var fields []string
	for _, x := range err.(interface{ Unwrap() []error }).Unwrap() {
		var f *engine.RequestError
		if !errors.As(x, &f) {
			t.Fatalf("%v is not a RequestError", x)
		}
		fields = append(fields, f.Field)
	}
	slices.Sort(fields)
	if want := []string{"guidance", "instructions", "lyrics", "max_frames", "prompt_mode", "rng", "steps"}; !slices.Equal(fields, want) {
		t.Errorf("faults of %v, expected %v", fields, want)
	}
}

// TestReferenceLimits tries the requests that the reference refuses, and those just
// inside its limits.
func TestReferenceLimits(t *testing.T) {
	shared := refdata.Shared(t, "requests at the reference's limits")
	var file struct {
		Base    map[string]any
		Entries []struct {
			Name         string
			Change       map[string]any
			OK           bool
			Frames       int
			PromptTokens int `json:"prompt_tokens"`
			Message      string
		}
	}
	tried, left := 0, 0
	for _, set := range []string{"tiny"} {
		dir := filepath.Join(shared, "golden", set)
		readJSON(t, filepath.Join(dir, "errors.json"), &file)
		e := open(t, dir, "fp32")
		defer e.Close()
		for _, x := range file.Entries {
			if testing.Short() && strings.HasPrefix(x.Name, "prompt_limit") {
				left++
				continue
			}
			t.Run(x.Name, func(t *testing.T) {
				get := func(name string) any {
					v, ok := x.Change[name]
					if !ok {
						v = file.Base[name]
					}
					if m, ok := v.(map[string]any); ok {
						v = strings.Repeat(m["piece"].(string), int(m["times"].(float64)))
					}
					return v
				}
				r := e.Defaults()
				r.PromptMode, r.RNG = engine.Reference, engine.Torch
				r.Instructions, r.Lyrics = get("prompt").(string), get("lyrics").(string)
				r.Seed, r.Steps = uint64(get("seed").(float64)), int(get("steps").(float64))
				seconds, ok := get("duration").(float64)
				if !ok { // recorded as text: nan, inf
					seconds = map[string]float64{"nan": math.NaN(), "inf": math.Inf(1)}[get("duration").(string)]
				}
				song, err := func() (*engine.Song, error) {
					var err error
					if r.MaxFrames, err = e.Frames(seconds); err != nil {
						return nil, err
					}
					return e.Sing(context.Background(), r)
				}()
				tried++
				switch {
				case x.OK && err != nil:
					t.Errorf("refused (%v), the reference accepts it", err)
				case !x.OK && err == nil:
					t.Errorf("accepted, the reference says %q", x.Message)
				case x.OK && (song.Frames != x.Frames || song.PromptTokens != x.PromptTokens):
					t.Errorf("%d frames, %d tokens; recorded %d, %d", song.Frames, song.PromptTokens, x.Frames, x.PromptTokens)
				}
			})
		}
	}
	t.Logf("%d requests tried", tried)
	if left > 0 {
		t.Logf("NOT EXAMINED in short mode: %d prompts of about 5000 tokens", left)
	}
}

// TestReplayRepeatsASong records a song and sings it again from its codes and noise,
// then with other flow settings.
func TestReplayRepeatsASong(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	r := short(e)
	replay := &engine.Replay{}
	r.Trace = func(x engine.TraceTensor) error {
		switch x.Name {
		case "codes":
			for i := range x.Shape[0] {
				replay.Codes = append(replay.Codes, slices.Clone(x.I32[i*x.Shape[1]:(i+1)*x.Shape[1]]))
			}
		case "window0.noise":
			replay.Noise = append(replay.Noise, slices.Clone(x.F32))
		}
		return nil
	}
	first := sing(t, e, r)
	r.Trace, r.Replay, r.Seed = nil, replay, 99
	if !sameSamples(first, sing(t, e, r)) {
		t.Error("the replayed song differs")
	}
	r.Steps = 5
	if again := sing(t, e, r); again.Frames != first.Frames || sameSamples(first, again) {
		t.Error("with other flow settings the replay has other frames, or the same samples")
	}
	r.Replay = &engine.Replay{Codes: [][]int32{{0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 1 << 20}}}
	if _, err := e.Sing(context.Background(), r); err == nil || !strings.Contains(err.Error(), "code 7 of iteration 1") {
		t.Errorf("a code out of range: %v", err)
	}
}

// TestObservingChangesNothing compares a traced song with an untraced one.
func TestObservingChangesNothing(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	for _, kind := range []engine.RNG{engine.Philox, engine.Torch} {
		r := short(e)
		r.RNG = kind
		plain := sing(t, e, r)
		names := map[string]bool{}
		r.Trace = func(x engine.TraceTensor) error {
			n := 1
			for _, d := range x.Shape {
				n *= d
			}
			if have := len(x.F32) + len(x.BF16) + len(x.I32); have != n {
				t.Errorf("%s: %d values for shape %v", x.Name, have, x.Shape)
			}
			names[x.Name] = true
			return nil
		}
		if !sameSamples(plain, sing(t, e, r)) {
			t.Errorf("%s: the traced song differs", kind)
		}
		for _, want := range []string{"text_ids", "prefill_hidden", "codes", "lm_hidden", "semantic_logits", "depth_hidden", "depth_logits",
			"cand_ids", "cand_probs", "cand_exponentials", "frame_hiddens", "window0.cond", "window0.noise", "window0.velocity_cond",
			"window0.velocity_uncond", "window0.latents_step1", "window0.latents", "window0.wave", "waveform"} {
			if !names[want] {
				t.Errorf("%s: the trace lacks %s", kind, want)
			}
		}
	}
}

func TestPrecisionIsRaisedWithAWarning(t *testing.T) {
	e := open(t, "", "bf16")
	defer e.Close()
	if p := e.Info().Precision; p != "mixed" {
		t.Errorf("precision %s, expected mixed", p)
	}
	if song := sing(t, e, short(e)); !strings.Contains(fmt.Sprint(song.Warnings), "precision raised from bf16 to mixed") {
		t.Errorf("warnings %q", song.Warnings)
	}
}

// TestCodesOfASong sings a song again from the codes it came with.
func TestCodesOfASong(t *testing.T) {
	e := open(t, "", "")
	defer e.Close()
	r := short(e)
	r.Seed = 7
	song := sing(t, e, r)
	if len(song.Codes) != song.Frames+1 {
		t.Fatalf("%d iterations of codes for %d frames", len(song.Codes), song.Frames)
	}
	r.Replay = &engine.Replay{Codes: song.Codes}
	if !sameSamples(song, sing(t, e, r)) {
		t.Error("the song's own codes gave another song")
	}
	r.Steps++
	if sameSamples(song, sing(t, e, r)) {
		t.Error("another number of steps gave the same song")
	}
}
