package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skald/host/checkpoint"
	"skald/host/refdata"
)

// short are flags for a song of half a second, quick with the built-in model.
var short = []string{"sing", "--lyrics", "[verse]", "--instructions", "fast piano, drums", "--duration", "0.5", "--steps", "2"}

func with(args []string, more ...string) []string { return append(args[:len(args):len(args)], more...) }

// TestSing makes short songs in every format and checks the files' sizes, which depend
// on the format alone.
func TestSing(t *testing.T) {
	t.Chdir(t.TempDir())
	var sizes [7]int64
	for i, test := range []struct {
		file  string
		more  []string
		bytes int64 // of one sample; 0 for compressed ones
	}{
		{"a.wav", nil, 2},
		{"b.wav", []string{"--wav-format", "pcm24"}, 3},
		{"c.wav", []string{"--wav-format", "float32"}, 4},
		{"d.pcm", nil, 2},
		{"e.flac", nil, 0},
		{"f.mp3", nil, 0},
		{"g.opus", []string{"--sample-rate", "48000"}, 0},
	} {
		got := skald(t, with(short, with(test.more, "-o", test.file)...)...)
		if got.code != exitOK {
			t.Fatalf("%s: %+v", test.file, got)
		}
		for _, want := range []string{"seed", "frames", "ended by", "RMS", "peak", "ar ", "flow ", "vocoder ", "music a second", test.file} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s: the report does not say %q: %s", test.file, want, got.stdout)
			}
		}
		if !strings.Contains(got.stderr, "built-in demonstration model") || !strings.Contains(got.stderr, "flow     done") {
			t.Errorf("%s: standard error is %q", test.file, got.stderr)
		}
		info, err := os.Stat(test.file)
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = info.Size()
		if samples := sizes[3] / 4; i == 3 && samples < 20000 {
			t.Errorf("%d samples for half a second", samples)
		}
	}
	samples := sizes[3] / 4
	for i, bytes := range []int64{2, 3, 4} {
		if extra := sizes[i] - 2*bytes*samples; extra < 44 || extra > 400 {
			t.Errorf("file %d has %d bytes for %d samples of %d bytes", i, sizes[i], 2*samples, bytes)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != len(sizes) {
		t.Errorf("the folder holds %v, %v; want the songs", entries, err)
	}
	for i, magic := range map[int]string{0: "RIFF", 4: "fLaC", 5: "ID3", 6: "OggS"} {
		name := string(rune('a'+i)) + map[int]string{0: ".wav", 4: ".flac", 5: ".mp3", 6: ".opus"}[i]
		if !strings.HasPrefix(read(t, name), magic) || i > 0 && sizes[i] >= sizes[0] {
			t.Errorf("%s begins with %.4q and has %d bytes, the .wav %d", name, read(t, name), sizes[i], sizes[0])
		}
	}
	t.Logf("examined %d files", len(sizes))
}

// TestSingNames checks where songs go: a free name by default, the named file replaced.
func TestSingNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, want := range []string{"song.wav", "song-2.wav"} {
		if got := skald(t, short...); got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("want %s: %+v", want, got)
		}
	}
	if err := os.WriteFile("song.wav", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := skald(t, with(short, "-o", "song.wav")...); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	first, second := read(t, "song.wav"), read(t, "song-2.wav")
	if first != second {
		t.Error("the same flags gave two songs")
	}
	if got := skald(t, with(short, "-o", "no/such/folder/song.wav")...); got.code != exitFailure || !strings.Contains(got.stderr, "no/such/folder") {
		t.Errorf("a folder that is not there: %+v", got)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSingTexts checks that a text, a file and standard input are the same to sing.
func TestSingTexts(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("words.txt", []byte("\ufeff[verse]"), 0o600); err != nil {
		t.Fatal(err)
	}
	songs := map[string]bool{}
	for i, lyrics := range []string{"[verse]", "@words.txt", "@-"} {
		file := "song" + strconv.Itoa(i) + ".pcm"
		got := skaldWith(t, context.Background(), []string{"SKALD_STEPS=2"}, "[verse]", "sing", "--lyrics", lyrics,
			"--instructions", "fast piano, drums", "--duration", "0.2", "-o", file)
		if got.code != exitOK {
			t.Fatalf("%+v", got)
		}
		songs[read(t, file)] = true
	}
	if len(songs) != 1 {
		t.Errorf("%d songs of one text", len(songs))
	}
	if text, err := readText("lyrics", "@@home", nil); err != nil || text != "@home" {
		t.Errorf("@@home is read as %q, %v", text, err)
	}
	if _, err := readText("lyrics", "@-", strings.NewReader(strings.Repeat("x", maxText+1))); err == nil {
		t.Error("a text beyond the bound is taken")
	}
	if _, err := readText("lyrics", "@-", strings.NewReader("\xff")); err == nil {
		t.Error("text that is not UTF-8 is taken")
	}
}

// TestInterrupted checks that a signal ends a song at once, with its exit code, and
// that no file is left.
func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(&signalError{signal})
		got := skaldWith(t, ctx, nil, "", with(short, "-o", "x.wav", "--trace", "x.safetensors")...)
		if got.code != code || got.stdout != "" {
			t.Errorf("%v: %+v", signal, got)
		}
		got = skaldWith(t, ctx, nil, "", "synth", "x")
		if got.code != code {
			t.Errorf("synth, %v: %+v", signal, got)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	amid := writerFunc(func(p []byte) {
		if strings.Contains(string(p), "ar       done") { // between frames and sound
			cancel(&signalError{syscall.SIGINT})
		}
	})
	if code := run(ctx, with(short, "-o", "x.wav", "--trace", "x.safetensors"), nil, strings.NewReader(""), io.Discard, amid); code != 130 {
		t.Errorf("interrupted in the middle of a song: exit code %d", code)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// TestTraceAndReplay writes a trace, replays it, and expects the same song and trace
// although the seed differs.
func TestTraceAndReplay(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := skald(t, with(short, "-o", "a.pcm", "--trace", "a.safetensors", "--seed", "7")...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if got := skald(t, with(short, "-o", "b.pcm", "--trace", "b.safetensors", "--seed", "8", "--replay", "a.safetensors")...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if read(t, "a.pcm") != read(t, "b.pcm") {
		t.Error("the replayed song differs")
	}
	a, b := open(t, "a.safetensors"), open(t, "b.safetensors")
	if a.Metadata()["seed"] != "7" || a.Metadata()[endedByKey] == "" {
		t.Errorf("metadata %v", a.Metadata())
	}
	for _, name := range []string{"text_ids", "codes", "frame_hiddens", "window0.cond", "window0.noise", "window0.latents", "waveform"} {
		x, ok := a.Tensor(name)
		if !ok {
			t.Errorf("the trace has no %s, only %v", name, a.Names())
			continue
		}
		if y, _ := b.Tensor(name); string(x.Data) != string(y.Data) || x.Elements() == 0 {
			t.Errorf("%s differs in the replayed song", name)
		}
	}
	t.Logf("examined a trace of %d tensors", len(a.Names()))

	other := filepath.Join(t.TempDir(), "other.safetensors")
	if err := checkpoint.WriteFile(other, []checkpoint.Tensor{{Name: "x", DType: checkpoint.F32, Shape: []int{0}}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := skald(t, with(short, "--replay", other)...); got.code != exitFailure || !strings.Contains(got.stderr, "holds no tensor codes") {
		t.Errorf("a file without codes: %+v", got)
	}
	for name, codes := range map[string]checkpoint.Tensor{
		"no columns":     {Name: "codes", DType: checkpoint.I32, Shape: []int{1 << 40, 0}},
		"wrong type":     {Name: "codes", DType: checkpoint.F32, Shape: []int{1, 1}, Data: make([]byte, 4)},
		"one dimension":  {Name: "codes", DType: checkpoint.I32, Shape: []int{1}, Data: make([]byte, 4)},
		"not a code":     {Name: "codes", DType: checkpoint.I64, Shape: []int{1, 1}, Data: []byte{0, 0, 0, 0, 0, 0, 0, 1}},
		"wrong codebook": {Name: "codes", DType: checkpoint.I32, Shape: []int{2, 1}, Data: make([]byte, 8)},
	} {
		if err := checkpoint.WriteFile(other, []checkpoint.Tensor{codes}, nil); err != nil {
			t.Fatal(err)
		}
		if got := skald(t, with(short, "--replay", other)...); got.code == exitOK || !strings.Contains(got.stderr, "code") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func open(t *testing.T, path string) *checkpoint.File {
	t.Helper()
	f, err := checkpoint.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestReference makes songs of the recorded cases from the command line alone, with
// torch's random numbers, and compares samples with those of the reference pipeline.
func TestReference(t *testing.T) {
	golden := filepath.Join(refdata.Shared(t, "songs from the command line against the reference's"), "golden", "tiny")
	var cases []struct {
		Name, Prompt, Lyrics, Precision string
		Seed                            uint64
		Duration                        float64
		Steps                           int     `json:"num_inference_steps"`
		Guidance                        float64 `json:"guidance_scale"`
	}
	manifest := read(t, filepath.Join(golden, "cases.json"))
	if err := json.Unmarshal([]byte(manifest), &cases); err != nil {
		var wrapped struct{ Cases json.RawMessage }
		if json.Unmarshal([]byte(manifest), &wrapped) != nil || json.Unmarshal(wrapped.Cases, &cases) != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	examined := 0
	for _, c := range cases {
		if c.Name != "f003_seed_max" && c.Name != "f012_scripts" && c.Name != "ends_itself" {
			continue
		}
		got := skald(t, "sing", "--model", golden, "--lyrics", c.Lyrics, "--instructions", c.Prompt,
			"--precision", c.Precision, "--rng", "torch", "--prompt-mode", "reference",
			"--seed", strconv.FormatUint(c.Seed, 10), "--duration", strconv.FormatFloat(c.Duration, 'g', -1, 64),
			"--steps", strconv.Itoa(c.Steps), "--guidance", strconv.FormatFloat(c.Guidance, 'g', -1, 64),
			"--trace", "t.safetensors", "-o", "t.pcm")
		if got.code != exitOK {
			t.Fatalf("%s: %+v", c.Name, got)
		}
		want, ok := open(t, filepath.Join(golden, "cases", c.Name+".safetensors")).Tensor("waveform")
		have, _ := open(t, "t.safetensors").Tensor("waveform")
		if !ok || len(want.Data) != len(have.Data) {
			t.Errorf("%s: waveform %v, want %v", c.Name, have.Shape, want.Shape)
			continue
		}
		var worst float64
		for i := 0; i < len(want.Data); i += 4 {
			a := math.Float32frombits(binary.LittleEndian.Uint32(want.Data[i:]))
			b := math.Float32frombits(binary.LittleEndian.Uint32(have.Data[i:]))
			worst = max(worst, math.Abs(float64(a)-float64(b)))
		}
		if worst > 1e-4 { // what the recorded data asks of an implementation
			t.Errorf("%s: samples differ by up to %g", c.Name, worst)
		}
		examined++
	}
	if examined != 3 {
		t.Errorf("found %d of 3 cases", examined)
	}
	t.Logf("examined %d songs", examined)
}

// TestSongAndTraceNeedTwoFiles gives both the same name in two spellings.
func TestSongAndTraceNeedTwoFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, trace := range []string{"a.wav", "./a.wav"} {
		if got := skald(t, with(short, "-o", "a.wav", "--trace", trace)...); got.code != exitUsage || !strings.Contains(got.stderr, "two files") {
			t.Errorf("--trace %s: %+v", trace, got)
		}
	}
}
