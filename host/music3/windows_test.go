package music3

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"skald/host/audio"
	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/refdata"
	"skald/host/rng"
)

// TestSeams renders songs of every length from 1 to 600 frames and looks at the
// samples: no silence within a song, and where two windows meet, both must have
// computed the same sound, so that the cut cannot be heard. Full windows are the same
// in every song that has them; each length adds its own last window.
func TestSeams(t *testing.T) {
	shared := refdata.Shared(t, "the seams of songs of 1 to 600 frames")
	const longest = 600
	stride := 1
	if testing.Short() {
		stride = 97
	}
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	ck, err := checkpoint.Open(filepath.Join(shared, "golden", "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	m, err := Load(context.Background(), dev, ck, ck.Config, FP32, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := randomVoice(t, m, longest)
	r, err := m.NewRenderer()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	track, err := m.NewTrack(RenderOptions{
		Steps: 1, Guidance: 1, // one pass: the seams do not depend on it
		Noise:    func(window int, dst []float32) { rng.Normals(1, uint32(window), dst) },
		Progress: func(RenderStage, int, int, int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer track.Release()
	render := func(w Window) [2][]float32 {
		if err := r.Denoise(context.Background(), track, v, w); err != nil {
			t.Fatal(err)
		}
		wave, err := r.Decode(context.Background(), track, w)
		if err != nil {
			t.Fatal(err)
		}
		return wave
	}

	examined, seams, quietest := 0, 0, 0
	worst := 0.0
	var before [2][]float32 // the full window before the last
	for last := 0; last*hopFrames < longest-hopFrames; last++ {
		carried := track.carried
		latents, cond := download(t, r.queue, track.latents), download(t, r.queue, track.cond)
		lo, hi := last*hopFrames+hopFrames+1, last*hopFrames+windowFrames
		if last == 0 {
			lo = 1
		}
		for frames := lo; frames <= min(hi, longest); frames += stride {
			windows := Windows(m.Config.ConditionEncoder, frames)
			if len(windows) != last+1 {
				t.Fatalf("%d frames have %d windows, expected %d", frames, len(windows), last+1)
			}
			track.carried = carried
			r.queue.Upload(track.latents, latents)
			r.queue.Upload(track.cond, cond)
			wave := render(windows[last])
			examined++
			kept := [2][]float32{wave[0][windows[last].Left:], wave[1][windows[last].Left:]}
			s := audio.Measure(kept[0], kept[1])
			quietest = max(quietest, s.LongestSilence)
			if err := s.Err(); err != nil || s.LongestSilence > m.SampleRate()/2 {
				t.Errorf("%d frames: %v, %d silent samples in a row", frames, err, s.LongestSilence)
			}
			if last > 0 {
				seams++
				worst = max(worst, seamDifference(before, wave, windows[last-1], windows[last], m.Config.ConditionEncoder.OutputHopLength))
			}
		}
		track.carried = carried
		r.queue.Upload(track.latents, latents)
		r.queue.Upload(track.cond, cond)
		full := Windows(m.Config.ConditionEncoder, longest+windowFrames)[last]
		before = render(full)
	}
	// The overlap's latents are restored exactly, and near the seam the vocoder sees
	// nothing else: the two windows differ by nothing at all.
	if worst != 0 {
		t.Errorf("at a seam two windows differ by %v", worst)
	}
	t.Logf("%d lengths examined, %d seams; longest silence %d samples, worst difference at a seam %v", examined, seams, quietest, worst)
}

// seamDifference compares the samples that the earlier window would have played after
// the cut, and the later one before it, over 20 latents on each side.
func seamDifference(a, b [2][]float32, wa, wb Window, hop int) float64 {
	const side = 20
	worst := 0.0
	for c := range a {
		cut := len(a[c]) - cropRight*hop
		for i := -side * hop; i < side*hop && wb.Left+i < len(b[c]); i++ {
			worst = max(worst, math.Abs(float64(a[c][cut+i])-float64(b[c][wb.Left+i])))
		}
	}
	return worst
}

// randomVoice has frames of random hidden states.
func randomVoice(t testing.TB, m *Model, frames int) *Voice {
	t.Helper()
	width := m.depth.cfg.Codebooks * m.lm.cfg.HiddenSize
	v, a := &Voice{frames: frames}, &allocator{dev: m.dev}
	for k := 0; k*hopFrames < frames; k++ {
		x := make([]float32, hopFrames*width)
		rng.Normals(2, uint32(k), x)
		v.store = append(v.store, &chunk{whole: a.upload(m.lm.dtype, x)})
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
	return v
}

func download(t *testing.T, q compute.Queue, b compute.Buffer) []float32 {
	t.Helper()
	v := make([]float32, b.Len())
	if err := q.Download(v, b); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestShortWindows: at 43 latents to 25 frames full windows just meet; at fewer a song of
// three would have a gap.
func TestShortWindows(t *testing.T) {
	c := checkpoint.ConditionEncoder{InputSamplingRate: 24000, InputHopLength: 960, OutputSamplingRate: 43 * 480, OutputHopLength: 480}
	if err := checkWindows(c); err != nil {
		t.Error(err)
	}
	c.OutputSamplingRate--
	if err := checkWindows(c); err == nil {
		t.Errorf("full windows of %d latents are accepted", Latents(c, windowFrames))
	}
}
