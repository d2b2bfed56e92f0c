package mp3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"skald/host/audio/internal/audiotest"
)

// signal is something to encode.
type signal struct {
	name     string
	config   Config
	channels [][]float32
}

// signals are songs, every rate, and lengths around those of MP3's frames; fewer for
// short tests, which also run on an emulator.
func signals(t testing.TB) []signal {
	var all []signal
	add := func(name string, rate int, channels ...[]float32) {
		all = append(all, signal{name, Config{SampleRate: rate, Channels: len(channels)}, channels})
	}
	songs := audiotest.Songs(t)
	lengths := []int{0, 1, 2, 100, 575, 576, 577, 1104, 1105, 1151, 1152, 1153, 2304, 3456}
	if testing.Short() {
		songs, lengths = songs[:1], []int{0, 1, 1105, 1153}
	}
	for i, song := range songs {
		x := audiotest.Floats(song)
		add(fmt.Sprint("song ", i+1), audiotest.SongRate, x...)
		if i == 0 {
			add("left channel of song 1", audiotest.SongRate, x[0])
		}
	}
	for i, rate := range sampleRates {
		x, y := tones(rate, 9000+i*111)
		add(fmt.Sprintf("%d Hz stereo", rate), rate, x, y)
		add(fmt.Sprintf("%d Hz mono", rate), rate, x)
	}
	for _, n := range lengths {
		x, y := tones(44100, n)
		add(fmt.Sprintf("%d samples", n), 44100, x, y)
	}
	return all
}

// tones are two chords well inside what every rate can hold.
func tones(rate, n int) (left, right []float32) {
	left, right = make([]float32, n), make([]float32, n)
	for i := range left {
		at := float64(i) / float64(rate)
		a, b, c := math.Sin(2*math.Pi*440*at), math.Sin(2*math.Pi*554*at), math.Sin(2*math.Pi*659*at)
		left[i], right[i] = float32(0.4*a+0.2*b), float32(0.4*a+0.2*c)
	}
	return left, right
}

func write(t testing.TB, w io.Writer, c Config, channels [][]float32) {
	t.Helper()
	e, err := NewEncoder(w, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(channels...); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// encode returns the file of a signal, its tag filled in.
func encode(t testing.TB, s signal) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "song.mp3"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, f, s.config, s.channels)
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compare reports how far a decoder's output is from a signal: the same number of
// samples, nothing delayed, the peak, and the ratio of signal and difference.
func compare(t *testing.T, s signal, got [][]float32) {
	t.Helper()
	n := len(s.channels[0])
	if len(got[0]) != n {
		t.Errorf("%s: %d samples come out, want %d", s.name, len(got[0]), n)
		return
	}
	if n < 3000 {
		return // too short for numbers to judge a psychoacoustic encoder
	}
	for c := range got { // the worst that was measured: 25.5 dB, and 0.113
		if ratio := audiotest.SNR(s.channels[c], got[c]); ratio < 25 {
			t.Errorf("%s: channel %d: signal %.1f dB above the difference", s.name, c, ratio)
		}
		if lag := audiotest.Lag(s.channels[c], got[c]); lag != 0 {
			t.Errorf("%s: channel %d comes %d samples late", s.name, c, lag)
		}
		want, peak := audiotest.Peak(s.channels[c]), audiotest.Peak(got[c])
		if math.Abs(peak-want) > 0.12 {
			t.Errorf("%s: channel %d: peak %.3f, want %.3f", s.name, c, peak, want)
		}
	}
}

// TestMpg123 has mpg123 decode every signal; it drops what the tag says.
func TestMpg123(t *testing.T) {
	decoded := 0
	for _, s := range signals(t) {
		file := audiotest.File(t, "song.mp3", encode(t, s))
		raw := audiotest.Run(t, nil, "mpg123", "--quiet", "--no-resync", "--encoding", "f32", "--stdout", file)
		compare(t, s, audiotest.Decoded(t, raw, len(s.channels)))
		decoded++
	}
	t.Logf("%d signals", decoded)
}

// TestFFmpeg has ffmpeg, which starts slowly, decode every fourth, and say the sample
// rate and the tags.
func TestFFmpeg(t *testing.T) {
	decoded := 0
	long := strings.Repeat("la ", 5000) + "la"
	for i, s := range signals(t) {
		if i%4 != 0 || len(s.channels[0]) == 0 { // it takes a file without samples for an error
			continue
		}
		s.config.Tags = [][2]string{{"TITLE", "Nächtlicher Zug"}, {"COMMENT", "machine-made"}, {"ENCODER", "skald 1"}, {"SEED", "18446744073709551615"}, {"SUNG", long}}
		file := audiotest.File(t, "song.mp3", encode(t, s))
		raw := audiotest.Run(t, nil, "ffmpeg", "-v", "error", "-i", file, "-f", "f32le", "-c:a", "pcm_f32le", "-")
		compare(t, s, audiotest.Decoded(t, raw, len(s.channels)))

		var probe struct {
			Streams []struct {
				Sample_rate string
				Channels    int
			}
			Format struct{ Tags map[string]string }
		}
		if err := json.Unmarshal(audiotest.Run(t, nil, "ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", file), &probe); err != nil {
			t.Fatal(err)
		}
		if got := probe.Streams[0]; got.Sample_rate != fmt.Sprint(s.config.SampleRate) || got.Channels != len(s.channels) {
			t.Errorf("%s: ffprobe sees %+v", s.name, got)
		}
		tags := probe.Format.Tags
		// A comment without a description is shown under its language's code.
		comment := tags["comment"] + tags["comment-und"]
		if tags["title"] != "Nächtlicher Zug" || comment != "machine-made" || tags["encoder"] != "skald 1" || tags["SEED"] != "18446744073709551615" || tags["SUNG"] != long {
			t.Errorf("%s: ffprobe sees the tags %v", s.name, tags)
		}
		decoded++
	}
	t.Logf("%d signals", decoded)
}

// TestStreamed compares the stream that nobody can go back in with the file: the same
// frames without the tag's.
func TestStreamed(t *testing.T) {
	for _, s := range signals(t) {
		var stream bytes.Buffer
		write(t, &stream, s.config, s.channels)
		file := encode(t, s)
		tag := len(file) - stream.Len()
		if tag <= 0 || !bytes.Equal(file[tag:], stream.Bytes()) {
			t.Errorf("%s: the file of %d bytes is not a tag and the stream of %d", s.name, len(file), stream.Len())
			continue
		}
		if !bytes.Contains(file[:tag], []byte("Xing")) || !bytes.Contains(file[:tag], []byte("LAME3.100")) {
			t.Errorf("%s: no tag in % x", s.name, file[:tag])
		}
		if b := stream.Bytes(); b[0] != 0xff || b[1]&0xe0 != 0xe0 {
			t.Errorf("%s: the stream begins with % x, not with a frame", s.name, b[:4])
		}
	}
	t.Logf("%d signals", len(signals(t)))
}

// TestClamp writes samples far beyond full scale, which must be as those at it.
func TestClamp(t *testing.T) {
	x := audiotest.Noise(1, 10000, 1)
	y := slices.Clone(x)
	for i := 0; i < len(x); i += 100 {
		x[i], y[i] = 1, math.MaxFloat32
		x[i+1], y[i+1] = -1, -1.5
	}
	c := Config{SampleRate: 44100, Channels: 1}
	if !bytes.Equal(encode(t, signal{"", c, [][]float32{y}}), encode(t, signal{"", c, [][]float32{x}})) {
		t.Error("not clamped")
	}
}

// TestBlocks cuts streams into calls at random; the bytes must not differ.
func TestBlocks(t *testing.T) {
	blocks := 0
	for i, s := range signals(t) {
		var whole, cut bytes.Buffer
		write(t, &whole, s.config, s.channels)
		e, err := NewEncoder(&cut, s.config)
		if err != nil {
			t.Fatal(err)
		}
		blocks += audiotest.Cuts(uint64(i), len(s.channels[0]), func(from, to int) {
			part := make([][]float32, len(s.channels))
			for c := range part {
				part[c] = s.channels[c][from:to]
			}
			if err := e.Write(part...); err != nil {
				t.Fatal(err)
			}
		})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(whole.Bytes(), cut.Bytes()) {
			t.Errorf("%s: the bytes differ when the samples come in blocks", s.name)
		}
	}
	t.Logf("%d blocks", blocks)
}

// TestSameEverywhere holds the bytes of one song, which must not depend on the kind of
// processor.
func TestSameEverywhere(t *testing.T) {
	song := audiotest.Floats(audiotest.Songs(t)[0])
	const want = "6bd28c119842b70f2d9022845dead510"
	if got := fmt.Sprintf("%x", md5.Sum(encode(t, signal{config: Config{SampleRate: audiotest.SongRate, Channels: 2}, channels: song}))); got != want {
		t.Errorf("MD5 sum %s, want %s", got, want)
	}
}

// TestConcurrent runs encoders side by side.
func TestConcurrent(t *testing.T) {
	left, right := tones(44100, 20000)
	var want bytes.Buffer
	write(t, &want, Config{SampleRate: 44100, Channels: 2}, [][]float32{left, right})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			var got bytes.Buffer
			e, err := NewEncoder(&got, Config{SampleRate: 44100, Channels: 2})
			if err != nil {
				t.Error(err)
				return
			}
			for at := 0; at < len(left); at += 500 {
				if err := e.Write(left[at:at+500], right[at:at+500]); err != nil {
					t.Error(err)
				}
			}
			if err := e.Close(); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%d bytes, %v; want %d", got.Len(), err, want.Len())
			}
		})
	}
	group.Wait()
}

// TestMemory encodes a while and looks at LAME's memory.
func TestMemory(t *testing.T) {
	e, err := NewEncoder(io.Discard, Config{SampleRate: 44100, Channels: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before := e.lame.module.Memory().Size()
	left, right := tones(44100, 44100)
	for range 10 {
		if err := e.Write(left, right); err != nil {
			t.Fatal(err)
		}
	}
	if after := e.lame.module.Memory().Size(); after > mostMemory<<16/4 {
		t.Errorf("LAME's memory grew from %d to %d bytes in ten seconds", before, after)
	} else {
		t.Logf("%d bytes at the beginning, %d after ten seconds", before, after)
	}
}

type failing struct{ left int }

var errFull = errors.New("no space")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestErrors(t *testing.T) {
	for want, c := range map[string]Config{
		"sample rate 96000 Hz: expected one of [8000 11025": {SampleRate: 96000, Channels: 2},
		"sample rate 0 Hz":           {Channels: 2},
		"0 channels":                 {SampleRate: 44100},
		"3 channels":                 {SampleRate: 44100, Channels: 3},
		"tag TITLE: 268435457 bytes": {SampleRate: 44100, Channels: 2, Tags: [][2]string{{"TITLE", strings.Repeat("x", 1<<28)}}},
	} {
		if _, err := NewEncoder(io.Discard, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	e, err := NewEncoder(io.Discard, Config{SampleRate: 44100, Channels: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(make([]float32, 1)); err == nil || !strings.Contains(err.Error(), "1 channels of samples: expected 2") {
		t.Errorf("too few channels: %v", err)
	}
	if err := e.Write(make([]float32, 1), make([]float32, 2)); err == nil || !strings.Contains(err.Error(), "channel 1 has 2 samples") {
		t.Errorf("channels of different lengths: %v", err)
	}
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		if err := e.Write([]float32{0, 0}, []float32{0, v}); err == nil || !strings.Contains(err.Error(), "sample 1 of channel 1 is") {
			t.Errorf("%v: error %v", v, err)
		}
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if err := e.Write(make([]float32, 1), make([]float32, 1)); err == nil {
		t.Error("a write after Close succeeded")
	}
	for _, room := range []int{10, 1000} {
		left, right := tones(44100, 44100)
		e, err := NewEncoder(&failing{room}, Config{SampleRate: 44100, Channels: 2, Tags: [][2]string{{"TITLE", "x"}}})
		if err == nil {
			err = e.Write(left, right)
			if closed := e.Close(); !errors.Is(closed, errFull) {
				t.Errorf("Close: error %v, want %v", closed, errFull)
			}
		}
		if !errors.Is(err, errFull) {
			t.Errorf("error %v, want %v", err, errFull)
		}
	}
}

// TestModule checks that lame.wasm reaches nothing outside its memory and is the one
// that its folder tells of.
func TestModule(t *testing.T) {
	p, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	if imports := p.code.ImportedFunctions(); len(imports) != 0 {
		t.Errorf("%d imports, among them %v", len(imports), imports[0])
	}
	text, err := os.ReadFile("lame/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(lameModule)); !strings.Contains(string(text), sum) {
		t.Errorf("lame/README.md does not name the SHA-256 of lame.wasm, %s", sum)
	}
}

// TestBuild builds the module again where its compiler is installed.
func TestBuild(t *testing.T) {
	for _, tool := range []string{"clang-19", "wasm-ld-19", "wasm2wat", "xz"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT EXAMINED: 1 module, whether lame/build.sh makes lame.wasm again: %s is missing, install what the script names", tool)
		}
	}
	if testing.Short() {
		t.Skip("NOT EXAMINED in short mode: 1 module, whether lame/build.sh makes lame.wasm again")
	}
	again := filepath.Join(t.TempDir(), "lame.wasm")
	if output, err := exec.CommandContext(context.Background(), "lame/build.sh", again).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	got, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, lameModule) {
		t.Error("lame/build.sh makes another module here; with the compiler of Debian 12 it is the same")
	}
}
