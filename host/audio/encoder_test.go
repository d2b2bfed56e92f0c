package audio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skald/host/audio/internal/audiotest"
	"skald/host/audio/resample"
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

// wanted is what a lossless decoder must find: samples at the rate of the file.
func wanted(t testing.TB, c EncoderConfig, channels [][]float32) [][]float32 {
	r, err := resample.New(c.InputRate, c.rate(), c.Channels)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]float32, c.Channels)
	head, err := r.Process(channels...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i] = slices.Clone(head[i])
	}
	for i, x := range r.Flush() {
		out[i] = append(out[i], x...)
	}
	return out
}

// TestForeign has ffmpeg decode a file of every configuration, and compares the sample
// rate, the number of samples, the peak, the tags, and where nothing may be lost every
// sample.
func TestForeign(t *testing.T) {
	for _, c := range configs() {
		t.Run(c.String(), func(t *testing.T) {
			x := song(t, c.Channels)
			data, err := Encode(c, x...)
			if err != nil {
				t.Fatal(err)
			}
			file := audiotest.File(t, "song."+c.Container.String(), data)
			want := wanted(t, c, x)

			input := []string{"-v", "error", "-i", file}
			encoding := map[Encoding]string{0: "s16le", PCM16: "s16le", PCM24: "s24le", Float32: "f32le"}[c.Encoding]
			if c.Container == PCM {
				input = []string{"-v", "error", "-f", encoding, "-ar", fmt.Sprint(c.rate()), "-ac", fmt.Sprint(c.Channels), "-i", file}
			}
			if c.Container == MP3 || c.Container == Opus {
				got := audiotest.Decoded(t, audiotest.Run(t, nil, "ffmpeg", append(input, "-f", "f32le", "-c:a", "pcm_f32le", "-")...), c.Channels)
				if len(got[0]) != len(want[0]) {
					t.Fatalf("%d samples, want %d", len(got[0]), len(want[0]))
				}
				for i := range want { // the worst that was measured: 0.019, and 22.1 dB
					if math.Abs(audiotest.Peak(got[i])-audiotest.Peak(want[i])) > 0.02 || audiotest.SNR(want[i], got[i]) < 22 {
						t.Errorf("channel %d: peak %.3f, want %.3f; signal %.1f dB above the difference", i,
							audiotest.Peak(got[i]), audiotest.Peak(want[i]), audiotest.SNR(want[i], got[i]))
					}
				}
			} else {
				got := audiotest.Run(t, nil, "ffmpeg", append(input, "-f", encoding, "-c:a", "pcm_"+encoding, "-")...)
				exact, err := AppendSamples(nil, max(c.Encoding, PCM16), want...)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, exact) {
					t.Fatalf("the samples differ: %d bytes, want %d", len(got), len(exact))
				}
			}
			if c.Container != PCM {
				probe(t, c, file)
			}
		})
	}
}

// probe compares what ffprobe says of a file's rate, channels and tags.
func probe(t *testing.T, c EncoderConfig, file string) {
	t.Helper()
	type tags map[string]string
	var said struct {
		Streams []struct {
			Sample_rate string
			Channels    int
			Tags        tags
		}
		Format struct{ Tags tags }
	}
	if err := json.Unmarshal(audiotest.Run(t, nil, "ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", file), &said); err != nil {
		t.Fatal(err)
	}
	if got := said.Streams[0]; got.Sample_rate != fmt.Sprint(c.rate()) || got.Channels != c.Channels {
		t.Errorf("ffprobe sees %s Hz, %d channels; want %d, %d", got.Sample_rate, got.Channels, c.rate(), c.Channels)
	}
	if c.Metadata == nil {
		return
	}
	found := tags{}
	for _, where := range []tags{said.Streams[0].Tags, said.Format.Tags} {
		for name, value := range where {
			found[strings.ToLower(strings.TrimSuffix(name, "-und"))] = value
		}
	}
	want := tags{"title": "Nächtlicher Zug nach Bergen", "comment": "machine-made, model MiniMax-Music3, seed 18446744073709551615", "encoder": "skald 1.0"}
	if c.Container != WAV {
		want["seed"], want["model"] = "18446744073709551615", "MiniMax-Music3"
	}
	for name, value := range want {
		if found[name] != value {
			t.Errorf("ffprobe sees the tags %q, want %q to be %q", found, name, value)
		}
	}
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

// brief keeps the first bytes and then has no room.
type brief struct{ left int }

var errFull = errors.New("no space")

func (b *brief) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestEncoderErrors(t *testing.T) {
	good := EncoderConfig{Container: FLAC, Channels: 2, InputRate: 44100}
	for _, c := range []struct {
		change func(*EncoderConfig)
		want   string
	}{
		{func(c *EncoderConfig) { c.Container = 0 }, "unknown container Container(0)"},
		{func(c *EncoderConfig) { c.Container = 6 }, "unknown container Container(6)"},
		{func(c *EncoderConfig) { c.Channels = 3 }, "3 channels: expected 1 or 2"},
		{func(c *EncoderConfig) { c.Encoding = Float32 }, "flac has no 32-bit float"},
		{func(c *EncoderConfig) { c.Container, c.Encoding = MP3, PCM16 }, "mp3 has no encoding"},
		{func(c *EncoderConfig) { c.Container, c.Encoding = WAV, 9 }, "unknown encoding"},
		{func(c *EncoderConfig) { c.Container, c.Encoding = PCM, 9 }, "unknown encoding"},
		{func(c *EncoderConfig) { c.Container, c.SampleRate = MP3, 96000 }, "expected one of [8000"},
		{func(c *EncoderConfig) { c.Container, c.SampleRate = Opus, 44100 }, "opus is always 48000"},
		{func(c *EncoderConfig) { c.SampleRate = 7999 }, "7999 Hz: expected 8000 to 192000"},
		{func(c *EncoderConfig) { c.InputRate = 0 }, "0 Hz"},
		{func(c *EncoderConfig) { c.InputRate, c.SampleRate = 1, 44100 }, "1 Hz"},
		{func(c *EncoderConfig) { c.Frames = -1 }, "-1 frames"},
		{func(c *EncoderConfig) { c.Frames = 1 << 40 }, "2^36"},
		{func(c *EncoderConfig) { c.Container, c.Frames = WAV, 1<<30 }, "too many for a WAV file"},
		{func(c *EncoderConfig) { c.Container, c.Frames = WAV, 1<<62 }, "2^36"},
	} {
		config := good
		c.change(&config)
		var b bytes.Buffer
		if _, err := NewEncoder(&b, config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
		if b.Len() > 0 {
			t.Errorf("%q: %d bytes were written", c.want, b.Len())
		}
	}
	nan := float32(math.NaN())
	for _, c := range configs() {
		e, err := NewEncoder(io.Discard, c)
		if err != nil {
			t.Fatal(err)
		}
		block := slices.Repeat([][]float32{{0, 1}}, c.Channels)
		if err := e.Write(block...); err != nil {
			t.Error(err)
		}
		block[c.Channels-1] = []float32{0, nan}
		if err := e.Write(block...); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("begins with sample 2: audio: sample 1 of channel %d is NaN", c.Channels-1)) {
			t.Errorf("NaN: error %v", err)
		}
		if err := e.Write(); err == nil {
			t.Error("a write without channels succeeded")
		}
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		if err := e.Write(block...); err == nil || !strings.Contains(err.Error(), "after Close") {
			t.Errorf("a write after Close: error %v", err)
		}

		announced := c
		announced.Frames = 5
		if e, err = NewEncoder(io.Discard, announced); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err == nil || !strings.Contains(err.Error(), "0 samples of each channel were written: 5 were announced") {
			t.Errorf("%v: too few samples: error %v", c, err)
		}
	}
	full := 0
	for _, c := range configs() {
		x := song(t, c.Channels)
		for _, room := range []int{0, 30, 1000} {
			e, err := NewEncoder(&brief{room}, c)
			if err == nil {
				err = e.Write(x...)
				if closed := e.Close(); err != nil && !errors.Is(closed, errFull) {
					t.Errorf("%v with room for %d bytes: Close: %v", c, room, closed)
				} else if err == nil {
					err = closed
				}
			}
			if !errors.Is(err, errFull) {
				t.Errorf("%v with room for %d bytes: error %v", c, room, err)
			}
			full++
		}
	}
	t.Logf("%d full disks", full)
}

func TestContainer(t *testing.T) {
	for _, c := range Containers() {
		if got, err := ParseContainer(c.String()); err != nil || got != c {
			t.Errorf("ParseContainer(%q) = %v, %v", c.String(), got, err)
		}
		for _, rate := range []int{0, 7999, 8000, 44100, 48000, 96000, 192000, 192001} {
			_, err := NewEncoder(io.Discard, EncoderConfig{Container: c, Channels: 2, InputRate: 44100, SampleRate: max(rate, 1)})
			if refused := c.CheckSampleRate(max(rate, 1)) != nil; refused != (err != nil) {
				t.Errorf("%v at %d Hz: CheckSampleRate refuses: %v, NewEncoder: %v", c, rate, refused, err)
			}
		}
	}
	if _, err := ParseContainer("ogg"); err == nil || !strings.Contains(err.Error(), "expected one of wav, flac, mp3, opus, pcm") {
		t.Errorf("error %v", err)
	}
	if got := Opus.MediaType() + " " + MP3.MediaType() + " " + WAV.MediaType(); got != "audio/ogg; codecs=opus audio/mpeg audio/wav" {
		t.Errorf("media types %s", got)
	}
}

func TestBuffer(t *testing.T) {
	var b Buffer
	for _, s := range []string{"hello ", "world"} {
		if n, err := b.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, c := range []struct {
		offset int64
		whence int
		want   int64
	}{{0, io.SeekCurrent, 11}, {3, io.SeekStart, 3}, {2, io.SeekCurrent, 5}, {-2, io.SeekEnd, 9}, {9, io.SeekStart, 9}} {
		if got, err := b.Seek(c.offset, c.whence); got != c.want || err != nil {
			t.Errorf("Seek(%d, %d) = %d, %v; want %d", c.offset, c.whence, got, err, c.want)
		}
	}
	for _, offset := range []int64{-1, 12, math.MaxInt64} {
		if _, err := b.Seek(offset, io.SeekStart); err == nil {
			t.Errorf("Seek(%d) succeeded", offset)
		}
	}
	_, _ = b.Write([]byte("LDen")) // over the end
	if string(b.Bytes()) != "hello worLDen" {
		t.Errorf("%q", b.Bytes())
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
