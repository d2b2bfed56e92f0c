//go:build cgo && cudaemu

package cuda_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"skald/cuda"
	"skald/cuda/internal/fake"
	"skald/host"
	"skald/host/compute"
	"skald/host/engine"
)

// openEngine loads the built-in model on the emulated GPU.
func openEngine(device, precision string) (*engine.Engine, error) {
	return engine.Open(context.Background(), engine.Options{Device: device, Precision: precision, Songs: 2})
}

// brief is a request for very few frames of the built-in model.
func brief(e *engine.Engine) engine.Request {
	r := e.Defaults()
	r.Lyrics, r.Instructions = "[verse]", "piano"
	r.MaxFrames, r.Steps, r.Seed = 2, 1, 5
	return r
}

// returned checks that the driver has everything back.
func returned(t *testing.T, after string) {
	t.Helper()
	if taken := fake.Taken(); taken != (fake.Counts{}) {
		t.Errorf("after %s the driver still has %+v", after, taken)
	}
}

func closeEngine(t *testing.T, e *engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// TestRefusedAtOpening refuses memory, streams and events one after another while the
// model is loaded: the error says what there was no room for, and nothing stays behind.
func TestRefusedAtOpening(t *testing.T) {
	returned(t, "other tests")
	step := 1
	if testing.Short() {
		step = 17
	}
	tried := 0
	for nth := 1; ; nth += step {
		fake.Refuse(nth)
		e, err := openEngine("cuda", "fp32")
		refused := fake.Refused()
		fake.Refuse(0)
		if !refused {
			if err != nil {
				t.Fatal(err)
			}
			closeEngine(t, e)
			returned(t, "a song that was not refused anything")
			break
		}
		tried++
		if err == nil {
			t.Errorf("refusal %d went unnoticed", nth)
			closeEngine(t, e)
		} else if text := err.Error(); !strings.Contains(text, "room") && !strings.Contains(text, "OutOfMemory") {
			t.Errorf("refusal %d: the error does not say what is wrong: %v", nth, err)
		}
		returned(t, "a refusal")
	}
	t.Logf("%d refusals, every %d of those that are possible", tried, step)
}

// TestRefusedInSong refuses them while songs are made: that song fails, or does without,
// and the next one is as it should be.
func TestRefusedInSong(t *testing.T) {
	e, err := openEngine("cuda", "fp32")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	var want *engine.Song
	for nth := 1; ; nth++ {
		fake.Refuse(nth)
		_, err := e.Sing(context.Background(), brief(e))
		happened := fake.Refused()
		fake.Refuse(0)
		if happened {
			refused++
			if err == nil {
				t.Errorf("refusal %d in a song went unnoticed", nth)
			} else if !strings.Contains(err.Error(), "room") && !strings.Contains(err.Error(), "OutOfMemory") {
				t.Errorf("refusal %d in a song: the error does not say what is wrong: %v", nth, err)
			}
		}
		song, err := e.Sing(context.Background(), brief(e))
		if err != nil {
			t.Fatalf("the song after refusal %d: %v", nth, err)
		}
		if want == nil {
			want = song
		}
		if !slices.Equal(song.Samples[0], want.Samples[0]) {
			t.Errorf("the song after refusal %d has other samples", nth)
		}
		if !happened {
			break
		}
	}
	closeEngine(t, e)
	returned(t, "all songs")
	if refused == 0 {
		t.Error("no song asked for anything")
	}
	t.Logf("%d refusals in songs", refused)
}

// TestFailedLaunches lets launches fail. One that is refused costs its song; one that
// fails when it runs ends the context, and the device must be opened again.
func TestFailedLaunches(t *testing.T) {
	const invalidConfiguration, illegalAddress = 9, 700
	e, err := openEngine("cuda", "fp32")
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.Sing(context.Background(), brief(e))
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, nth := range []int{1, 2, 30, 90, 200, 350} {
		fake.FailLaunch(nth, invalidConfiguration, false)
		_, err := e.Sing(context.Background(), brief(e))
		fake.FailLaunch(0, 0, false)
		if err != nil {
			failed++
			if !strings.Contains(err.Error(), "made to fail") {
				t.Errorf("launch %d: %v", nth, err)
			}
		}
		song, err := e.Sing(context.Background(), brief(e))
		if err != nil || !slices.Equal(song.Samples[0], want.Samples[0]) {
			t.Errorf("the song after launch %d failed: error %v, or other samples", nth, err)
		}
	}
	if failed < 3 {
		t.Errorf("%d launches failed", failed)
	}
	closeEngine(t, e)
	returned(t, "refused launches")

	for _, nth := range []int{1, 40, 150} {
		e, err := openEngine("cuda", "fp32")
		if err != nil {
			t.Fatal(err)
		}
		fake.FailLaunch(nth, illegalAddress, true)
		_, err = e.Sing(context.Background(), brief(e))
		fake.FailLaunch(0, 0, false)
		if !errors.Is(err, cuda.ErrLost) {
			t.Errorf("launch %d ended the context: error %v, want ErrLost", nth, err)
		}
		if _, err := e.Sing(context.Background(), brief(e)); !errors.Is(err, cuda.ErrLost) {
			t.Errorf("a song on a lost device: error %v, want ErrLost", err)
		}
		closeEngine(t, e)
		returned(t, "a lost device")
	}
	e, err = openEngine("cuda", "fp32")
	if err != nil {
		t.Fatal(err)
	}
	song, err := e.Sing(context.Background(), brief(e))
	if err != nil || !slices.Equal(song.Samples[0], want.Samples[0]) {
		t.Errorf("the song on the device that was opened again: error %v, or other samples", err)
	}
	closeEngine(t, e)
	returned(t, "the last song")
	t.Logf("%d refused launches, 3 that ended the context", failed)
}

// TestNothingToUse has no driver, an old GPU, and one that is too small.
func TestNothingToUse(t *testing.T) {
	kindOf := func(name string) string {
		d, err := host.Open(name, host.Options{})
		if err != nil {
			t.Error(err)
			return ""
		}
		defer d.Close()
		return d.Info().Kind
	}
	if kind := kindOf("auto"); kind != "cuda" {
		t.Errorf("auto opened %q, want the emulated GPU", kind)
	}
	for variable, wants := range map[string][2]string{
		"SKALD_FAKE_DEVICES=0":     {"finds none", "finds none"},
		"SKALD_FAKE_CAPABILITY=75": {"compute capability 7.5", "no bfloat16"},
	} {
		t.Run(variable, func(t *testing.T) {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
			if kind := kindOf("auto"); kind != "cpu" {
				t.Errorf("auto opened %q, want the processor", kind)
			}
			_, err := host.Open("cuda:0", host.Options{})
			if !errors.Is(err, cuda.ErrNoDevice) || !strings.Contains(err.Error(), wants[0]) {
				t.Errorf("cuda:0: %v", err)
			}
			if why := host.Passed(); why == nil || !strings.Contains(why.Error(), wants[1]) {
				t.Errorf("auto passed the GPU over because of %v", why)
			}
		})
	}
	t.Run("too small", func(t *testing.T) {
		t.Setenv("SKALD_FAKE_MEMORY_MIB", "8")
		e, err := openEngine("cuda", "fp32")
		if err == nil {
			closeEngine(t, e)
			t.Fatal("a model on a GPU of 8 MiB was loaded")
		}
		if !strings.Contains(err.Error(), "not enough memory") || !strings.Contains(err.Error(), "available are 0.01 GB of 0.01 GB") {
			t.Errorf("a GPU of 8 MiB: %v", err)
		}
	})
	returned(t, "devices that cannot be used")
	if _, err := cuda.Open(1, cuda.Options{}); err == nil || !strings.Contains(err.Error(), "there is no GPU 1") {
		t.Errorf("GPU 1: %v", err)
	}
}

// TestIntegrated has a GPU that shares the system's memory.
func TestIntegrated(t *testing.T) {
	t.Setenv("SKALD_FAKE_INTEGRATED", "1")
	d := open(t)
	if detail := d.Info().Detail; !strings.Contains(detail, "shares the system's memory") {
		t.Errorf("detail %q", detail)
	}
	if m := d.Memory(); m.Total < 256<<20 || m.Free <= 0 || m.Free > m.Total || m.Total == 8<<30 {
		t.Errorf("memory %+v is not the system's", m)
	}
	w, err := d.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: []int{2, 4}, Data: make([]byte, 32)}, compute.UseLinear, compute.F32)
	if err != nil || w.PrivateBytes() != 32 {
		t.Errorf("a weight of 32 bytes: %v, %v", w, err)
	}
}
