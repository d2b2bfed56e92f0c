package audio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-audio/wav"
)

var cd = Format{Encoding: PCM16, SampleRate: 44100, Channels: 2}

func TestWAVHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		name   string
		format Format
		size   int64
		want   string
	}{
		{"a tenth of a second", cd, 12288,
			"RIFF\x24\x30\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x44\xac\x00\x00\x10\xb1\x02\x00\x04\x00\x10\x00data\x00\x30\x00\x00"},
		{"streamed", cd, UnknownSize,
			"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x44\xac\x00\x00\x10\xb1\x02\x00\x04\x00\x10\x00data\xff\xff\xff\xff"},
		{"24-bit mono, odd", Format{PCM24, 8000, 1}, 9,
			"RIFF\x2e\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\xc0\x5d\x00\x00\x03\x00\x18\x00data\x09\x00\x00\x00"},
		{"float", Format{Float32, 48000, 2}, 800,
			"RIFF\x52\x03\x00\x00WAVEfmt \x12\x00\x00\x00\x03\x00\x02\x00\x80\xbb\x00\x00\x00\xdc\x05\x00\x08\x00\x20\x00\x00\x00" +
				"fact\x04\x00\x00\x00\x64\x00\x00\x00data\x20\x03\x00\x00"},
	} {
		got, err := WAVHeader(c.format, c.size)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestWAVHeaderLimits(t *testing.T) {
	const largest = math.MaxUint32 - 1 - 36 - 2 // a multiple of the frame's 4 bytes
	if _, err := WAVHeader(cd, largest); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		name   string
		format Format
		size   int64
		want   string
	}{
		{"4 GiB", cd, largest + 4, "too many for a WAV file"},
		{"more than 4 GiB", cd, math.MaxInt64 - 3, "too many for a WAV file"},
		{"negative", cd, -2, "expected 0 or more"},
		{"part of a frame", cd, 6, "multiple of the frame's 4 bytes"},
		{"encoding", Format{0, 44100, 2}, 0, "unknown encoding"},
		{"no channels", Format{PCM16, 44100, 0}, 0, "0 channels"},
		{"channels", Format{PCM16, 44100, 1 << 40}, 0, "channels: expected 1 to"},
		{"rate", Format{PCM16, 0, 2}, 0, "sample rate 0 Hz"},
		{"high rate", Format{Float32, 1 << 30, 2}, 0, "sample rate 1073741824 Hz"},
	} {
		if _, err := WAVHeader(c.format, c.size); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// TestWriteWAV compares whole files: the header, the samples, and nothing else.
func TestWriteWAV(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	files := 0
	for _, e := range []Encoding{PCM16, PCM24, Float32} {
		for channels := 1; channels <= 3; channels++ {
			for _, n := range []int{0, 1, 5, 4095, 4096, 4097, 9001} {
				f := Format{e, 44100, channels}
				song := make([][]float32, channels)
				for i := range song {
					song[i] = noise(r, n)
				}
				got := writeFile(t, f, nil, song...)
				want, err := WAVHeader(f, int64(n*f.FrameBytes()))
				if err != nil {
					t.Fatal(err)
				}
				if want, err = AppendSamples(want, e, song...); err != nil {
					t.Fatal(err)
				}
				if len(want)%2 != 0 {
					want = append(want, 0)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%v, %d channels of %d samples: %d bytes, want %d, or others", e, channels, n, len(got), len(want))
				}
				files++
			}
		}
	}
	t.Logf("%d files", files)
}

func TestWriteWAVMetadata(t *testing.T) {
	m := &Metadata{Title: "Night train", Model: "MiniMax-Music3", Seed: math.MaxUint64, Software: "skald 1.0"}
	got := writeFile(t, cd, m, []float32{0, 1}, []float32{1, 0})
	want := "RIFF\xa4\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x44\xac\x00\x00\x10\xb1\x02\x00\x04\x00\x10\x00" +
		"data\x08\x00\x00\x00\x00\x00\xff\x7f\xff\x7f\x00\x00" +
		"LIST\x70\x00\x00\x00INFO" +
		"ICMT\x3e\x00\x00\x00machine-made, model MiniMax-Music3, seed 18446744073709551615\x00" +
		"INAM\x0c\x00\x00\x00Night train\x00" +
		"ISFT\x0a\x00\x00\x00skald 1.0\x00"
	if string(got) != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

// TestDecode reads the files back with another's decoder.
func TestDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	left, right := noise(r, 5000), noise(r, 5000)
	for _, e := range []Encoding{PCM16, PCM24, Float32} {
		m := &Metadata{Title: "Öl", Model: "M", Seed: 7, Software: "skald"}
		file := writeFile(t, Format{e, 48000, 2}, m, left, right)
		d := wav.NewDecoder(bytes.NewReader(file))
		buf, err := d.FullPCMBuffer()
		if err != nil {
			t.Fatal(err)
		}
		if d.SampleRate != 48000 || d.NumChans != 2 || int(d.BitDepth) != 8*e.Bytes() || len(buf.Data) != 10000 {
			t.Fatalf("%v: %v, %d samples", e, d, len(buf.Data))
		}
		for i, v := range buf.Data {
			x := left[i/2]
			if i%2 == 1 {
				x = right[i/2]
			}
			if v != int(encode(e, x)) {
				t.Fatalf("%v: sample %d is %d, want %d", e, i, v, encode(e, x))
			}
		}
		d = wav.NewDecoder(bytes.NewReader(file))
		d.ReadMetadata()
		if d.Metadata == nil || d.Metadata.Title != "Öl" || d.Metadata.Software != "skald" ||
			d.Metadata.Comments != "machine-made, model M, seed 7" {
			t.Errorf("%v: metadata %+v", e, d.Metadata)
		}
	}
}

func TestWriteWAVErrors(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name     string
		format   Format
		channels [][]float32
		want     string
	}{
		{"NaN", cd, [][]float32{{0}, {nan}}, "sample 0 of channel 1 is NaN"},
		{"channels", cd, [][]float32{{0}}, "1 channels of samples: the format says 2"},
		{"lengths", cd, [][]float32{{0}, {}}, "channel 1 has 0 samples"},
		{"format", Format{PCM16, -1, 2}, [][]float32{{0}, {0}}, "sample rate -1 Hz"},
	} {
		w := new(seekBuffer)
		err := WriteWAV(w, c.format, nil, c.channels...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if len(w.b) != 0 {
			t.Errorf("%s: %d bytes were written", c.name, len(w.b))
		}
	}
	for limit := range 100 { // a full disk at any place is an error
		w := &seekBuffer{limit: limit + 1}
		if err := WriteWAV(w, cd, &Metadata{Title: "a"}, []float32{0}, []float32{0}); err == nil {
			t.Errorf("the disk is full after %d bytes: no error", limit)
		}
	}
}

func TestWriteWAVFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "song.wav")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteWAV(file, cd, nil, make([]float32, 3072), make([]float32, 3072)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 12332 {
		t.Errorf("%v, %v: want 12332 bytes", info, err)
	}
}

// FuzzMetadata writes any title and walks the chunks of the file.
func FuzzMetadata(f *testing.F) {
	f.Add("", "", uint64(0))
	f.Add("Night train", "MiniMax-Music3", uint64(42))
	f.Add("two\nlines\x00", "\xff", uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, title, model string, seed uint64) {
		m := Metadata{Title: title, Model: model, Seed: seed}
		file := writeFile(t, Format{PCM24, 44100, 1}, &m, []float32{0.5})
		top := chunks(t, file)
		if len(top) != 1 || top[0].id != "RIFF" || !bytes.HasPrefix(top[0].data, []byte("WAVE")) {
			t.Fatalf("not one RIFF WAVE chunk: %q", file)
		}
		inner := chunks(t, top[0].data[4:])
		if len(inner) != 3 || inner[0].id != "fmt " || inner[1].id != "data" || inner[2].id != "LIST" {
			t.Fatalf("not the chunks fmt, data, LIST: %q", file)
		}
		for _, c := range chunks(t, inner[2].data[4:]) {
			s := strings.TrimRight(string(c.data), "\x00")
			if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("%s holds %q", c.id, s)
			}
			if c.id == "ICMT" && !strings.HasSuffix(s, fmt.Sprintf("seed %d", seed)) {
				t.Errorf("comment %q", s)
			}
		}
	})
}

type chunk struct {
	id   string
	data []byte
}

// chunks splits b into RIFF chunks, each at an even position.
func chunks(t *testing.T, b []byte) (all []chunk) {
	t.Helper()
	for len(b) > 0 {
		if len(b) < 8 {
			t.Fatalf("%d bytes are left over", len(b))
		}
		size := int(binary.LittleEndian.Uint32(b[4:]))
		if size+size%2 > len(b)-8 {
			t.Fatalf("chunk %q of %d bytes in %d", b[:4], size, len(b)-8)
		}
		all = append(all, chunk{string(b[:4]), b[8 : 8+size]})
		b = b[8+size+size%2:]
	}
	return all
}

func writeFile(t *testing.T, f Format, m *Metadata, channels ...[]float32) []byte {
	t.Helper()
	w := new(seekBuffer)
	if err := WriteWAV(w, f, m, channels...); err != nil {
		t.Fatal(err)
	}
	return w.b
}

// seekBuffer is a file in memory; with a limit, on a disk that is full after limit-1
// bytes.
type seekBuffer struct {
	b     []byte
	at    int
	limit int
}

func (s *seekBuffer) Write(p []byte) (int, error) {
	if s.limit > 0 && s.at+len(p) >= s.limit {
		return 0, io.ErrShortWrite
	}
	s.b = append(s.b[:s.at], append(p[:len(p):len(p)], s.b[min(s.at+len(p), len(s.b)):]...)...)
	s.at += len(p)
	return len(p), nil
}

func (s *seekBuffer) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		s.at = int(offset)
	case io.SeekCurrent:
		s.at += int(offset)
	case io.SeekEnd:
		s.at = len(s.b) + int(offset)
	}
	return int64(s.at), nil
}
