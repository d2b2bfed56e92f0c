package music3

import (
	"context"
	"testing"

	"skald/host/checkpoint"
	"skald/host/cpu"
	"skald/host/nano"
	"skald/host/rng"
)

// builtIn loads the built-in model.
func builtIn(t testing.TB) *Model {
	t.Helper()
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	ck, err := checkpoint.OpenFS(nano.FS(), "nano")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(context.Background(), dev, ck, ck.Config, Mixed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// startVoices admits n voices with prompts of random tokens.
func startVoices(t testing.TB, m *Model, l *FrameLoop, n, frames int) []*Voice {
	t.Helper()
	var voices []*Voice
	for s := range n {
		v := &Voice{MaxFrames: frames, Seed: uint64(s)}
		ids, none := make([]int32, 40), make([]int32, 40)
		for i := range ids {
			ids[i], none[i] = int32((i*7+s)%256), int32(m.Config.LanguageModel.AudioCFGID)
		}
		none[0], none[38], none[39] = ids[0], ids[38], ids[39]
		ids[0], none[0] = 1, 1
		if err := l.Start(v, ids, none); err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			var err error
			if done, err = l.Prefill(v, none); err != nil {
				t.Fatal(err)
			}
		}
		voices = append(voices, v)
	}
	return voices
}

// BenchmarkFrame is one step of the frame loop on the built-in model; after the first
// frame nothing but the frames' own memory, once every hopFrames, is allocated.
func BenchmarkFrame(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(map[int]string{1: "1 song", 4: "4 songs"}[n], func(b *testing.B) {
			m := builtIn(b)
			l, err := m.NewFrameLoop(n, 4*2*4000)
			if err != nil {
				b.Fatal(err)
			}
			voices := startVoices(b, m, l, n, 3000)
			b.ReportAllocs()
			for b.Loop() {
				live := l.stillSinging(0, voices)
				if len(live) < n || live[0].frames > 2900 {
					b.StopTimer()
					for _, v := range voices {
						l.Retire(v)
						v.Release()
					}
					voices = startVoices(b, m, l, n, 3000)
					b.StartTimer()
				}
				if err := l.Step(voices); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWindow is one full window of the built-in model, 8 steps.
func BenchmarkWindow(b *testing.B) {
	m := builtIn(b)
	v := randomVoice(b, m, windowFrames)
	r, err := m.NewRenderer()
	if err != nil {
		b.Fatal(err)
	}
	track, err := m.NewTrack(RenderOptions{
		Steps: 8, Guidance: 1.7, Noise: func(_ int, dst []float32) { rng.Normals(1, 0, dst) },
		Progress: func(RenderStage, int, int, int) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	w := Windows(m.Config.ConditionEncoder, windowFrames)[0]
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Denoise(context.Background(), track, v, w); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Decode(context.Background(), track, w); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFlowStep is one pass of the flow transformer, both halves of the guidance.
func BenchmarkFlowStep(b *testing.B) { benchmarkStage(b, flowStage) }

// BenchmarkVocoder is all blocks of the vocoder over one window.
func BenchmarkVocoder(b *testing.B) { benchmarkStage(b, vocoderStage) }

func flowStage(s *Stages) (func() error, error)    { return s.Flow(2, 86, true) }
func vocoderStage(s *Stages) (func() error, error) { return s.Vocoder(86) }

func benchmarkStage(b *testing.B, stage func(*Stages) (func() error, error)) {
	s, err := builtIn(b).NewStages()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	run, err := stage(s)
	if err != nil {
		b.Fatal(err)
	}
	if err := run(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNoAllocation: after the first time, a frame, a flow step and the vocoder's blocks
// allocate nothing that grows with their number.
func TestNoAllocation(t *testing.T) {
	m := builtIn(t)
	s, err := m.NewStages()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, stage := range map[string]func(*Stages) (func() error, error){"flow step": flowStage, "vocoder": vocoderStage} {
		run, err := stage(s)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(3, func() {
			if err := run(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("a %s allocates %v times", name, n)
		}
	}
	l, err := m.NewFrameLoop(1, 4000)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// Frames have memory of their own, which comes with the first for hopFrames of them.
	voices := startVoices(t, m, l, 1, 90)
	for range 3 {
		if err := l.Step(voices); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(80, func() {
		if err := l.Step(voices); err != nil {
			t.Fatal(err)
		}
	}); n > 0 || voices[0].frames < 50 {
		t.Errorf("a frame allocates %v times, %d frames", n, voices[0].frames)
	}
}
