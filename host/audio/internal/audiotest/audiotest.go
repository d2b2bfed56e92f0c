// Package audiotest holds what the tests of the audio formats share: programs of others
// that decode, and songs to encode.
package audiotest

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/mewkiz/flac"
)

// packages of Debian that hold the programs.
var packages = map[string]string{
	"flac": "flac", "ffmpeg": "ffmpeg", "ffprobe": "ffmpeg", "mpg123": "mpg123",
	"opusdec": "opus-tools", "opusinfo": "opus-tools", "sox": "sox",
}

// Run runs a program with the given standard input and returns its standard output.
// Without the program the test is skipped, with a message that says what was not
// examined; if the program fails, so does the test.
func Run(t testing.TB, input []byte, program string, arguments ...string) []byte {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("NOT EXAMINED: what %s makes of it (install Debian's %s)", program, packages[program])
	}
	c := exec.Command(path, arguments...)
	var output, messages bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(input), &output, &messages
	if err := c.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", program, arguments, err, messages.Bytes())
	}
	return output.Bytes()
}

// File writes data to a file of the given name in a folder of the test's own.
func File(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SongRate is the sample rate of [Songs] in Hz.
const SongRate = 44100

// Songs are pieces of two seconds, stereo, of songs by the built-in model: 16-bit
// integers, one slice for each channel.
func Songs(t testing.TB) [][][]int32 {
	t.Helper()
	_, source, _, _ := runtime.Caller(0)
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(source), "../../testdata/song*.flac"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no songs in host/audio/testdata: %v", err)
	}
	var songs [][][]int32
	for _, path := range slices.Sorted(slices.Values(paths)) {
		stream, err := flac.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		song := make([][]int32, stream.Info.NChannels)
		for n := uint64(0); n < stream.Info.NSamples; {
			f, err := stream.ParseNext()
			if err != nil {
				t.Fatal(err)
			}
			for c, s := range f.Subframes {
				song[c] = append(song[c], s.Samples...)
			}
			n += uint64(f.BlockSize)
		}
		stream.Close()
		songs = append(songs, song)
	}
	return songs
}

// Floats are the samples of integers of 16 bits, full scale from -1 to 1.
func Floats(channels [][]int32) [][]float32 {
	out := make([][]float32, len(channels))
	for c, x := range channels {
		out[c] = make([]float32, len(x))
		for i, v := range x {
			out[c][i] = float32(v) / (1<<15 - 1)
		}
	}
	return out
}

// Noise is white, between -level and level, the same for the same seed.
func Noise(seed uint64, n int, level float32) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = level * (2*r.Float32() - 1)
	}
	return x
}

// Decoded splits interleaved little-endian float32 samples, as decoders write them,
// into channels.
func Decoded(t testing.TB, data []byte, channels int) [][]float32 {
	t.Helper()
	x := make([]float32, len(data)/4)
	if _, err := binary.Decode(data, binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	if len(x)*4 != len(data) || len(x)%channels != 0 {
		t.Fatalf("%d bytes are not frames of %d float32", len(data), channels)
	}
	out := make([][]float32, channels)
	for i, v := range x {
		out[i%channels] = append(out[i%channels], v)
	}
	return out
}

// Cuts calls f with the bounds of random blocks, some of them empty, that cover n.
func Cuts(seed uint64, n int, f func(from, to int)) (blocks int) {
	r := rand.New(rand.NewPCG(seed, 1))
	for at := 0; at < n; blocks++ {
		to := min(n, at+r.IntN(1+r.IntN(9000)))
		f(at, to)
		at = to
	}
	return blocks
}

// SNR is the power of want over that of its difference to got, in dB.
func SNR(want, got []float32) float64 {
	signal, difference := 0.0, 0.0
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		signal += float64(w) * float64(w)
		difference += d * d
	}
	return 10 * math.Log10(signal/difference)
}

// Peak is the largest magnitude.
func Peak(x []float32) float64 {
	peak := 0.0
	for _, v := range x {
		peak = max(peak, math.Abs(float64(v)))
	}
	return peak
}

// Lag is by how many samples, of at most 50, got is late: where the correlation with
// want is largest.
func Lag(want, got []float32) int {
	const most = 50
	best, lag := math.Inf(-1), 0
	for l := -most; l <= most; l++ {
		sum := 0.0
		for i := most; i < min(len(want), len(got))-most; i++ {
			sum += float64(want[i]) * float64(got[i+l])
		}
		if sum > best {
			best, lag = sum, l
		}
	}
	return lag
}
