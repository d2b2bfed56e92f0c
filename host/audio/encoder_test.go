package audio

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skald/host/audio/internal/audiotest"
)

var about = &Metadata{Title: "Nächtlicher Zug\nnach Bergen", Model: "MiniMax-Music3", Seed: math.MaxUint64, Software: "skald 1.0"}

// configs are all containers at the rates of the song and at others, in stereo and mono;
// a fourth of them for short tests, which also run on an emulator.
func configs() (all []EncoderConfig) {
	if testing.Short() {
		for _, c := range Containers() {
			all = append(all, EncoderConfig{Container: c, Channels: 2, InputRate: audiotest.SongRate, Metadata: about})
		}
		return append(all, EncoderConfig{Container: WAV, Encoding: Float32, Channels: 1, InputRate: audiotest.SongRate, SampleRate: 48000, Metadata: about})
	}
	for _, c := range Containers() {
		rates := []int{44100, 16000, 96000, 12345}
		switch c {
		case MP3:
			rates = []int{44100, 16000, 48000}
		case Opus:
			rates = []int{48000}
		}
		for i, rate := range rates {
			all = append(all, EncoderConfig{Container: c, Channels: 2 - i%2, InputRate: audiotest.SongRate, SampleRate: rate, Metadata: about})
		}
	}
	for _, c := range []Container{WAV, FLAC, PCM} {
		all = append(all, EncoderConfig{Container: c, Encoding: PCM24, Channels: 2, InputRate: audiotest.SongRate, Metadata: about})
	}
	return append(all,
		EncoderConfig{Container: WAV, Encoding: Float32, Channels: 2, InputRate: audiotest.SongRate, SampleRate: 48000, Metadata: about},
		EncoderConfig{Container: Opus, Channels: 1, InputRate: audiotest.SongRate},
	)
}

func (c EncoderConfig) String() string {
	return fmt.Sprintf("%v of %v, %d channels, %d to %d Hz", c.Container, c.Encoding, c.Channels, c.InputRate, c.SampleRate)
}

// rate is the sample rate of what comes out.
func (c EncoderConfig) rate() int {
	switch {
	case c.SampleRate != 0:
		return c.SampleRate
	case c.Container == Opus:
		return 48000
	}
	return c.InputRate
}

// song is more than half a second of one.
func song(t testing.TB, channels int) [][]float32 {
	var part [][]float32
	for _, x := range audiotest.Floats(audiotest.Songs(t)[0])[:channels] {
		part = append(part, x[:25000])
	}
	return part
}

// stream is what goes to a writer that cannot seek.
func stream(t testing.TB, c EncoderConfig, seed uint64, channels [][]float32) []byte {
	t.Helper()
	var b bytes.Buffer
	encodeTo(t, &b, c, seed, channels)
	return b.Bytes()
}

// encodeTo writes the channels in one call, or, with a seed, in random blocks.
func encodeTo(t testing.TB, w io.Writer, c EncoderConfig, seed uint64, channels [][]float32) (blocks int) {
	t.Helper()
	e, err := NewEncoder(w, c)
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	part := slices.Clone(channels)
	send := func(from, to int) {
		for c := range part {
			part[c] = channels[c][from:to]
		}
		if err := e.Write(part...); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	if seed == 0 {
		send(0, len(channels[0]))
	} else {
		blocks = audiotest.Cuts(seed, len(channels[0]), send)
	}
	if err := e.Close(); err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	return blocks
}

// TestBlocks writes songs as a whole and in random blocks, to streams and to files: the
// same bytes.
func TestBlocks(t *testing.T) {
	blocks := 0
	for i, c := range configs() {
		x := song(t, c.Channels)
		whole := stream(t, c, 0, x)
		if cut := stream(t, c, uint64(i+1), x); !bytes.Equal(cut, whole) {
			t.Errorf("%v: a stream in blocks differs", c)
		}
		c.Frames = int64(len(x[0]))
		known := stream(t, c, 0, x)
		if cut := stream(t, c, uint64(i+1), x); !bytes.Equal(cut, known) {
			t.Errorf("%v: a stream of known length in blocks differs", c)
		}
		file, err := Encode(c, x...)
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		c.Frames = 0
		var cut Buffer
		blocks += encodeTo(t, &cut, c, uint64(i+1), x)
		if !bytes.Equal(cut.Bytes(), file) {
			t.Errorf("%v: a file in blocks differs from Encode's", c)
		}
	}
	t.Logf("%d encoders, %d blocks", len(configs()), blocks)
}

// TestFile writes to a file of the operating system, which Encode's must equal.
func TestFile(t *testing.T) {
	for _, c := range configs() {
		x := song(t, c.Channels)
		want, err := Encode(c, x...)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(t.TempDir(), "song."+c.Container.String()))
		if err != nil {
			t.Fatal(err)
		}
		encodeTo(t, f, c, 0, x)
		if _, err := f.WriteString("behind"); err != nil { // the position must be the end
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(f.Name()); err != nil || string(got) != string(want)+"behind" {
			t.Errorf("%v: the file differs: %d bytes, want %d, %v", c, len(got)-len("behind"), len(want), err)
		}
	}
	t.Logf("%d files", len(configs()))
}

// TestWAVStreams compares the headers of the three kinds of WAV.
func TestWAVStreams(t *testing.T) {
	c := EncoderConfig{Container: WAV, Channels: 2, InputRate: 44100, Metadata: about}
	x := [][]float32{{0, 0.5, 1}, {0, -0.5, -1}}
	samples, err := AppendSamples(nil, PCM16, x...)
	if err != nil {
		t.Fatal(err)
	}
	header, err := WAVHeader(Format{PCM16, 44100, 2}, UnknownSize)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stream(t, c, 0, x), string(header)+string(samples); string(got) != want {
		t.Errorf("unknown length:\n got %q\nwant %q", got, want)
	}
	var whole Buffer
	if err := WriteWAV(&whole, Format{PCM16, 44100, 2}, about, x...); err != nil {
		t.Fatal(err)
	}
	file, err := Encode(c, x...)
	if err != nil {
		t.Fatal(err)
	}
	c.Frames = 3
	for name, got := range map[string][]byte{"known length": stream(t, c, 0, x), "Encode": file} {
		if !bytes.Equal(got, whole.Bytes()) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, whole.Bytes())
		}
	}
}

// TestOddWAV has an odd number of bytes, which a stream must not pad and a file must.
func TestOddWAV(t *testing.T) {
	c := EncoderConfig{Container: WAV, Encoding: PCM24, Channels: 1, InputRate: 8000, Metadata: about}
	x := []float32{0, 0.5, 1}
	if got := len(stream(t, c, 0, [][]float32{x})); got != 44+9 {
		t.Errorf("a stream of %d bytes, want %d", got, 44+9)
	}
	var b Buffer
	encodeTo(t, &b, c, 0, [][]float32{x})
	if inner := chunks(t, chunks(t, b.Bytes())[0].data[4:]); len(inner) != 3 || inner[2].id != "LIST" {
		t.Errorf("not the chunks fmt, data, LIST: %q", b.Bytes())
	}
}

// TestSilentSong encodes nothing but zeros, and no samples at all.
func TestSilentSong(t *testing.T) {
	for _, c := range configs() {
		for _, n := range []int{0, 1, 50000} {
			x := slices.Repeat([][]float32{make([]float32, n)}, c.Channels)
			data, err := Encode(c, x...)
			if err != nil {
				t.Errorf("%v: %d samples: %v", c, n, err)
			}
			if len(data) == 0 && c.Container != PCM {
				t.Errorf("%v: %d samples: no bytes", c, n)
			}
		}
	}
}

// TestClamp writes samples far beyond full scale, which must be as those at it.
func TestClamp(t *testing.T) {
	for _, c := range configs() {
		if c.rate() != c.InputRate {
			continue // the filter spreads what is beyond
		}
		x, y := audiotest.Noise(1, 5000, 1), audiotest.Noise(1, 5000, 1)
		for i := 0; i < len(x); i += 100 {
			x[i], y[i] = 1, math.MaxFloat32
		}
		if got, want := stream(t, c, 0, [][]float32{y, y}[:c.Channels]), stream(t, c, 0, [][]float32{x, x}[:c.Channels]); !bytes.Equal(got, want) {
			t.Errorf("%v: not clamped", c)
		}
	}
}

// TestWAVTooLong pretends that almost 4 GiB are in a file.
func TestWAVTooLong(t *testing.T) {
	s, err := newWAVSink(&nowhere{}, Format{Float32, 192000, 2}, nil, UnknownSize)
	if err != nil {
		t.Fatal(err)
	}
	s.written = math.MaxUint32 - 1000
	if err := s.Write(make([]float32, 50), make([]float32, 50)); err != nil {
		t.Error(err)
	}
	if err := s.Write(make([]float32, 100), make([]float32, 100)); err == nil || !strings.Contains(err.Error(), "too many for a WAV file") {
		t.Errorf("error %v", err)
	}
}

type nowhere struct{}

func (*nowhere) Write(p []byte) (int, error)    { return len(p), nil }
func (*nowhere) Seek(int64, int) (int64, error) { return 0, nil }
