package flac

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/meta"

	"skald/host/audio/internal/audiotest"
)

// signal is something to encode.
type signal struct {
	name     string
	config   Config
	channels [][]int32
}

// signals are songs, lengths around those of blocks, and what is hard to predict or
// hard to hold in the format's numbers; fewer of the first two for short tests, which
// also run on an emulator.
func signals(t testing.TB) []signal {
	var all []signal
	add := func(name string, bits, rate int, channels ...[]int32) {
		all = append(all, signal{name, Config{
			SampleRate: rate, Channels: len(channels), BitsPerSample: bits,
			Vendor: "skald", Tags: [][2]string{{"TITLE", name}},
		}, channels})
	}
	songs := audiotest.Songs(t)
	lengths := []int{0, 1, 2, 4, 5, 15, 16, 24, 25, 26, 255, 4095, 4096, 4097, 8192, 9001}
	if testing.Short() {
		songs, lengths = songs[:1], []int{0, 1, 5, 25, 4097}
	}
	for i, song := range songs {
		add(fmt.Sprint("song ", i+1), 16, audiotest.SongRate, song...)
		add(fmt.Sprintf("left channel of song %d", i+1), 16, audiotest.SongRate, song[0])
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths {
		add(fmt.Sprintf("%d samples", n), 16, 44100, tone(n, 16, 0.7), noise(r, n, 16, 300))
	}
	const n = 10000
	for _, bits := range []int{16, 24} {
		most := int32(1)<<(bits-1) - 1
		flat := func(v int32) []int32 { return slices.Repeat([]int32{v}, n) }
		square := make([]int32, n)
		for i := range square {
			square[i] = most
			if i%7 > 3 {
				square[i] = -most - 1
			}
		}
		impulse := make([]int32, n)
		impulse[n/2] = most
		opposite := slices.Clone(square)
		for i, v := range opposite {
			opposite[i] = -v - 1
		}
		add(fmt.Sprint("silence, ", bits), bits, 44100, flat(0), flat(0))
		add(fmt.Sprint("constants, ", bits), bits, 44100, flat(most), flat(-most-1))
		add(fmt.Sprint("full-scale noise, ", bits), bits, 44100, noise(r, n, bits, most), noise(r, n, bits, most))
		add(fmt.Sprint("full-scale tone, ", bits), bits, 44100, tone(n, bits, 1), tone(n, bits, 1))
		add(fmt.Sprint("full-scale square in opposite phase, ", bits), bits, 44100, square, opposite)
		add(fmt.Sprint("one impulse, ", bits), bits, 44100, impulse, flat(0))
		add(fmt.Sprint("quiet noise, ", bits), bits, 44100, noise(r, n, bits, 1), noise(r, n, bits, 2))
	}
	for _, rate := range []int{1, 8000, 11025, 12345, 22050, 44101, 65535, 65536, 65537, 88200, 95999, 96000, 655350, 655351, MaxSampleRate} {
		add(fmt.Sprintf("%d Hz", rate), 16, rate, tone(5000, 16, 0.5), noise(r, 5000, 16, 5000))
	}
	for channels := 3; channels <= 8; channels++ {
		add(fmt.Sprintf("%d channels", channels), 16, 44100, slices.Repeat([][]int32{tone(5000, 16, 0.5)}, channels)...)
	}
	return all
}

func tone(n, bits int, level float64) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(level * float64(int32(1)<<(bits-1)-1) * math.Sin(float64(i)*0.05))
	}
	return x
}

func noise(r *rand.Rand, n, bits int, most int32) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = r.Int32N(2*most+1) - most
	}
	return x
}

// encode returns the file of a signal, its header completed.
func encode(t testing.TB, s signal) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "song.flac")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, f, s.config, s.channels)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, w io.Writer, c Config, channels [][]int32) {
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

// interleaved are the samples as the MD5 sum and `flac -d` have them.
func interleaved(s signal) []byte {
	var b []byte
	for i := range s.channels[0] {
		for _, x := range s.channels {
			b = binary.LittleEndian.AppendUint32(b, uint32(x[i]))[:len(b)+s.config.BitsPerSample/8]
		}
	}
	return b
}

// TestDecode reads every signal back with the decoder of the module: header and samples.
func TestDecode(t *testing.T) {
	samples := 0
	for _, s := range signals(t) {
		stream, err := flac.Parse(bytes.NewReader(encode(t, s)))
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		n := len(s.channels[0])
		info := stream.Info
		if info.SampleRate != uint32(s.config.SampleRate) || int(info.NChannels) != len(s.channels) ||
			int(info.BitsPerSample) != s.config.BitsPerSample || info.NSamples != uint64(n) ||
			info.BlockSizeMin != blockSize || info.BlockSizeMax != blockSize || info.MD5sum != md5.Sum(interleaved(s)) {
			t.Errorf("%s: header %+v", s.name, info)
		}
		comments := stream.Blocks[0].Body.(*meta.VorbisComment)
		if comments.Vendor != "skald" || len(comments.Tags) != 1 || comments.Tags[0] != [2]string{"TITLE", s.name} {
			t.Errorf("%s: comments %+v", s.name, comments)
		}
		got := make([][]int32, len(s.channels))
		for {
			f, err := stream.ParseNext()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: after %d samples: %v", s.name, len(got[0]), err)
			}
			for c, sub := range f.Subframes {
				got[c] = append(got[c], sub.Samples...)
			}
		}
		for c := range got {
			if !slices.Equal(got[c], s.channels[c]) {
				t.Errorf("%s: channel %d differs", s.name, c)
			}
			samples += len(got[c])
		}
	}
	t.Logf("%d signals, %d samples", len(signals(t)), samples)
}

// TestReferenceDecoder has `flac -d` read every signal. It compares the MD5 sum and the
// header's numbers itself; the samples are compared here.
func TestReferenceDecoder(t *testing.T) {
	decoded := 0
	for _, s := range signals(t) {
		file := audiotest.File(t, "song.flac", encode(t, s))
		arguments := []string{"--decode", "--silent", "--stdout", "--force-raw-format", "--endian=little", "--sign=signed", file}
		if len(s.channels[0]) > 0 { // it warns of a length of 0, which stands for unknown
			arguments = append(arguments, "--warnings-as-errors")
		}
		raw := audiotest.Run(t, nil, "flac", arguments...)
		if !bytes.Equal(raw, interleaved(s)) {
			t.Errorf("%s: the samples differ", s.name)
		}
		decoded++
	}
	t.Logf("%d signals", decoded)
}

// TestStreamed has ffmpeg, which starts slowly, read every third signal from a stream
// that nobody could go back in, so that its header lacks the length and the sum.
func TestStreamed(t *testing.T) {
	decoded := 0
	for i, s := range signals(t) {
		if i%3 != 0 || len(s.channels[0]) == 0 { // it takes a stream without samples for an error
			continue
		}
		var b bytes.Buffer
		write(t, &b, s.config, s.channels)
		format := map[int]string{16: "s16le", 24: "s24le"}[s.config.BitsPerSample]
		raw := audiotest.Run(t, b.Bytes(), "ffmpeg", "-v", "error", "-xerror", "-f", "flac", "-i", "-", "-f", format, "-c:a", "pcm_"+format, "-")
		if !bytes.Equal(raw, interleaved(s)) {
			t.Errorf("%s: the samples differ", s.name)
		}
		decoded++
	}
	t.Logf("%d signals", decoded)
}

// TestSize compares with the reference encoder: smaller than its -1 on songs, and not
// far from its default, -5.
func TestSize(t *testing.T) {
	for i, song := range audiotest.Songs(t) {
		s := signal{config: Config{SampleRate: audiotest.SongRate, Channels: 2, BitsPerSample: 16}, channels: song}
		got := len(encode(t, s))
		size := func(level string) int {
			return len(audiotest.Run(t, interleaved(s), "flac", level, "--silent", "--stdout", "--no-padding", "--no-seektable",
				"--force-raw-format", "--endian=little", "--sign=signed", "--channels=2", "--bps=16", fmt.Sprint("--sample-rate=", audiotest.SongRate), "-"))
		}
		fast, usual, best := size("-1"), size("-5"), size("-8")
		if got >= fast || got > usual {
			t.Errorf("song %d: %d bytes; flac -1 makes %d, -5 %d, -8 %d", i+1, got, fast, usual, best)
		}
		t.Logf("song %d: %d samples in %d bytes; flac -1 makes %d, -5 %d, -8 %d", i+1, len(song[0]), got, fast, usual, best)
	}
}

// TestCompression bounds the size of what is simple, without another encoder.
func TestCompression(t *testing.T) {
	most := map[string]int{
		"silence, 16":     200,
		"constants, 24":   200,
		"one impulse, 16": 800,
		"full-scale square in opposite phase, 16": 10000,
		"full-scale noise, 16":                    10000*4 + 200,
		"full-scale noise, 24":                    10000*6 + 200,
		"full-scale tone, 16":                     10000,
	}
	checked := 0
	for _, s := range signals(t) {
		if most[s.name] == 0 {
			continue
		}
		if got := len(encode(t, s)); got > most[s.name] {
			t.Errorf("%s: %d bytes, expected at most %d", s.name, got, most[s.name])
		}
		checked++
	}
	if checked != len(most) {
		t.Errorf("%d of %d signals", checked, len(most))
	}
}

// TestSameEverywhere holds the bytes of one song, which must not depend on the kind of
// processor. A change of the analysis may change the sum.
func TestSameEverywhere(t *testing.T) {
	s := signal{config: Config{SampleRate: audiotest.SongRate, Channels: 2, BitsPerSample: 16}, channels: audiotest.Songs(t)[0]}
	const want = "9c6e2fec949a5a97def688e4eecc41ec"
	if got := fmt.Sprintf("%x", md5.Sum(encode(t, s))); got != want {
		t.Errorf("MD5 sum %s, want %s", got, want)
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
			part := make([][]int32, len(s.channels))
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

// TestHeaders compares the header of a stream whose length is known, of one whose
// length isn't, and of a file, which may begin anywhere.
func TestHeaders(t *testing.T) {
	s := signal{config: Config{SampleRate: 48000, Channels: 2, BitsPerSample: 16}, channels: [][]int32{tone(5000, 16, 1), tone(5000, 16, 1)}}
	var unknown, known bytes.Buffer
	write(t, &unknown, s.config, s.channels)
	promised := s.config
	promised.Samples = 5000
	write(t, &known, promised, s.channels)
	file := encode(t, s)

	// Positions in the header (RFC 9639, section 8.2).
	const sizesAt, lengthAt, sumAt, end = 8 + 4, 8 + 13, 8 + 18, 8 + 34
	number := func(b []byte) uint32 { return binary.BigEndian.Uint32(b[lengthAt+1:]) }
	if number(unknown.Bytes()) != 0 || number(known.Bytes()) != 5000 || number(file) != 5000 {
		t.Errorf("lengths %d, %d, %d; want 0, 5000, 5000", number(unknown.Bytes()), number(known.Bytes()), number(file))
	}
	if none := make([]byte, 16); !bytes.Equal(unknown.Bytes()[sumAt:end], none) || !bytes.Equal(known.Bytes()[sumAt:end], none) || bytes.Equal(file[sumAt:end], none) {
		t.Error("the MD5 sum must be there in the file alone")
	}
	if !bytes.Equal(unknown.Bytes()[end:], file[end:]) || !bytes.Equal(known.Bytes()[end:], file[end:]) {
		t.Error("what follows the header differs")
	}

	// The sizes of the two frames, the first from a file of it alone.
	alone := encode(t, signal{config: s.config, channels: [][]int32{s.channels[0][:blockSize], s.channels[1][:blockSize]}})
	first := len(alone) - bytes.Index(alone, []byte{0xff, 0xf8}) // behind the header
	second := len(file) - len(alone)
	size := func(b []byte) int { return int(b[0])<<16 | int(b[1])<<8 | int(b[2]) }
	if smallest, largest := size(file[sizesAt:]), size(file[sizesAt+3:]); smallest != min(first, second) || largest != max(first, second) {
		t.Errorf("frames of %d to %d bytes, want %d and %d", smallest, largest, first, second)
	}

	f, err := os.Create(filepath.Join(t.TempDir(), "later.flac"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("before"); err != nil {
		t.Fatal(err)
	}
	write(t, f, s.config, s.channels)
	if _, err := f.WriteString("behind"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "before" + string(file) + "behind"; string(got) != want {
		t.Error("a stream that does not begin with the file is another one")
	}
}

// TestPipe writes to a pipe, whose type can seek but which cannot.
func TestPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := signal{config: Config{SampleRate: 48000, Channels: 1, BitsPerSample: 16}, channels: [][]int32{tone(5000, 16, 1)}}
	var want bytes.Buffer
	write(t, &want, s.config, s.channels)
	go func() {
		defer w.Close()
		write(t, w, s.config, s.channels)
	}()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes through a pipe, %v; want the %d of a stream", len(got), err, want.Len())
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
	good := Config{SampleRate: 44100, Channels: 2, BitsPerSample: 16}
	for want, c := range map[string]Config{
		"sample rate 0 Hz":       {Channels: 2, BitsPerSample: 16},
		"sample rate 1048576 Hz": {SampleRate: MaxSampleRate + 1, Channels: 2, BitsPerSample: 16},
		"0 channels":             {SampleRate: 44100, BitsPerSample: 16},
		"9 channels":             {SampleRate: 44100, Channels: 9, BitsPerSample: 16},
		"20 bits per sample":     {SampleRate: 44100, Channels: 2, BitsPerSample: 20},
		"-1 samples":             {SampleRate: 44100, Channels: 2, BitsPerSample: 16, Samples: -1},
		"bytes of tags":          {SampleRate: 44100, Channels: 2, BitsPerSample: 16, Vendor: strings.Repeat("x", 1<<24)},
	} {
		if _, err := NewEncoder(io.Discard, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for want, channels := range map[string][][]int32{
		"1 channels of samples":           {{1}},
		"channel 1 has 2 samples":         {{1}, {1, 2}},
		"sample 1 of channel 0 is 32768":  {{1, 32768}, {1, 2}},
		"sample 0 of channel 1 is -32769": {{1}, {-32769}},
	} {
		e, err := NewEncoder(io.Discard, good)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Write(channels...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}

	promised := good
	promised.Samples = 7
	e, err := NewEncoder(struct{ io.Writer }{io.Discard}, promised)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write([]int32{1}, []int32{2}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err == nil || !strings.Contains(err.Error(), "1 samples were written, the header promises 7") {
		t.Errorf("too few samples: %v", err)
	}
	if err := e.Write([]int32{1}, []int32{2}); err == nil {
		t.Error("a write after Close succeeded")
	}

	for room := range 3 {
		e, err := NewEncoder(&failing{room * 100}, good)
		for range 3 {
			if err == nil {
				err = e.Write(tone(5000, 16, 1), tone(5000, 16, 1))
			}
		}
		if !errors.Is(err, errFull) {
			t.Errorf("error %v, want %v", err, errFull)
		}
		if e != nil && !errors.Is(e.Close(), errFull) {
			t.Error("Close forgot the error")
		}
	}
}
