package opus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"skald/host/audio/internal/audiotest"
	"skald/host/audio/resample"
)

// signal is something to encode.
type signal struct {
	name     string
	config   Config
	channels [][]float32
}

// signals are songs, and lengths around those of packets and pages; fewer for short
// tests, which also run on an emulator.
func signals(t testing.TB) []signal {
	var all []signal
	add := func(name string, channels ...[]float32) {
		all = append(all, signal{name, Config{
			Channels: len(channels), InputRate: audiotest.SongRate,
			Vendor: "skald 1", Tags: [][2]string{{"TITLE", name}, {"COMMENT", "machine-made"}},
		}, channels})
	}
	songs := audiotest.Songs(t)
	lengths := []int{0, 1, 2, 311, 312, 313, 647, 648, 649, 959, 960, 961, 1920, 23687, 23688, 23689, 24000, 47688, 48001}
	if testing.Short() {
		songs, lengths = songs[:1], []int{0, 1, 648, 649, 23688}
	}
	for i, song := range songs {
		x := at48k(t, audiotest.Floats(song))
		add(fmt.Sprint("song ", i+1), x...)
		if i == 0 {
			add("left channel of song 1", x[0])
		}
	}
	for _, n := range lengths {
		x, y := tones(n)
		add(fmt.Sprintf("%d samples", n), x, y)
		if n%2 == 0 {
			add(fmt.Sprintf("%d samples, mono", n), x)
		}
	}
	return all
}

func at48k(t testing.TB, song [][]float32) [][]float32 {
	r, err := resample.New(audiotest.SongRate, SampleRate, len(song))
	if err != nil {
		t.Fatal(err)
	}
	head, err := r.Process(song...)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]float32, len(song))
	for c := range out {
		out[c] = append(out[c], head[c]...)
	}
	for c, x := range r.Flush() {
		out[c] = append(out[c], x...)
	}
	return out
}

// tones are two chords that begin and end softly.
func tones(n int) (left, right []float32) {
	left, right = make([]float32, n), make([]float32, n)
	for i := range left {
		at := float64(i) / SampleRate
		soft := min(1, float64(min(i, n-i))/1000)
		a, b, c := math.Sin(2*math.Pi*440*at), math.Sin(2*math.Pi*554*at), math.Sin(2*math.Pi*659*at)
		left[i], right[i] = float32(soft*(0.4*a+0.2*b)), float32(soft*(0.4*a+0.2*c))
	}
	return left, right
}

func encode(t testing.TB, s signal) []byte {
	t.Helper()
	var b bytes.Buffer
	e, err := NewEncoder(&b, s.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(s.channels...); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
	for c := range got { // the worst that was measured: 21.0 dB; 0.039 on a processor with AVX-512, 0.054 on one without
		if ratio := audiotest.SNR(s.channels[c], got[c]); ratio < 20.5 {
			t.Errorf("%s: channel %d: signal %.1f dB above the difference", s.name, c, ratio)
		}
		if lag := audiotest.Lag(s.channels[c], got[c]); lag != 0 {
			t.Errorf("%s: channel %d comes %d samples late", s.name, c, lag)
		}
		want, peak := audiotest.Peak(s.channels[c]), audiotest.Peak(got[c])
		if math.Abs(peak-want) > 0.06 {
			t.Errorf("%s: channel %d: peak %.3f, want %.3f", s.name, c, peak, want)
		}
	}
}

// TestOpusdec has the reference decoder read every signal.
func TestOpusdec(t *testing.T) {
	decoded := 0
	for _, s := range signals(t) {
		file := audiotest.File(t, "song.opus", encode(t, s))
		raw := audiotest.Run(t, nil, "opusdec", "--quiet", "--float", "--rate", "48000", file, "-")
		compare(t, s, audiotest.Decoded(t, raw, len(s.channels)))
		decoded++
	}
	t.Logf("%d signals", decoded)
}

// TestOpusinfo has opusinfo judge every stream, which complains of whatever is not as it
// should be, and compares what it says of length and tags.
func TestOpusinfo(t *testing.T) {
	judged := 0
	for _, s := range signals(t) {
		file := audiotest.File(t, "song.opus", encode(t, s))
		text := string(audiotest.Run(t, nil, "opusinfo", file))
		seconds := float64(len(s.channels[0])) / SampleRate
		length := fmt.Sprintf("%dm:%06.3fs", int(seconds)/60, math.Mod(math.Floor(seconds*1000)/1000, 60))
		for _, want := range []string{
			"Encoded with skald 1", "TITLE=" + s.name, "COMMENT=machine-made", "Pre-skip: 312",
			fmt.Sprint("Original sample rate: ", audiotest.SongRate, " Hz"), fmt.Sprint("Channels: ", len(s.channels)),
			"Playback length: " + length,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", s.name, want, text)
			}
		}
		if strings.Contains(text, "WARNING") || strings.Contains(text, "ERROR") {
			t.Errorf("%s: %s", s.name, text)
		}
		judged++
	}
	t.Logf("%d streams", judged)
}

// TestFFmpeg has ffmpeg, which starts slowly, read every fifth signal.
func TestFFmpeg(t *testing.T) {
	decoded := 0
	for i, s := range signals(t) {
		if i%5 != 0 {
			continue
		}
		raw := audiotest.Run(t, encode(t, s), "ffmpeg", "-v", "error", "-xerror", "-f", "ogg", "-i", "-", "-f", "f32le", "-c:a", "pcm_f32le", "-")
		compare(t, s, audiotest.Decoded(t, raw, len(s.channels)))
		decoded++
	}
	t.Logf("%d signals", decoded)
}

// TestQuality compares with libopus, as ffmpeg has it, at the same number of bytes: what
// comes out must be as near to the song.
func TestQuality(t *testing.T) {
	for _, s := range signals(t)[:2] {
		n, seconds := len(s.channels[0]), float64(len(s.channels[0]))/SampleRate
		file := encode(t, s)
		var raw []byte
		for i := range n {
			for _, x := range s.channels {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x[i]))
			}
		}
		ours := float64(len(file)) * 8 / seconds
		other := audiotest.Run(t, raw, "ffmpeg", "-v", "error", "-f", "f32le", "-ar", "48000", "-ac", fmt.Sprint(len(s.channels)), "-i", "-",
			"-c:a", "libopus", "-b:a", fmt.Sprint(bitrate*len(s.channels)), "-f", "ogg", "-")
		ratio := func(file []byte) float64 {
			decoded := audiotest.Decoded(t, audiotest.Run(t, file, "ffmpeg", "-v", "error", "-f", "ogg", "-i", "-", "-f", "f32le", "-c:a", "pcm_f32le", "-"), len(s.channels))
			return audiotest.SNR(s.channels[0], decoded[0])
		}
		got, want := ratio(file), ratio(other)
		if got < want-0.5 {
			t.Errorf("%s: signal %.1f dB above the difference, with libopus %.1f dB", s.name, got, want)
		}
		t.Logf("%s: %.0f kbit/s, signal %.1f dB above the difference; libopus: %.0f kbit/s, %.1f dB",
			s.name, ours/1000, got, float64(len(other))*8/seconds/1000, want)
	}
}

// page is one of a stream's.
type page struct {
	flags   byte
	granule int64
	lacing  []byte
	data    []byte
}

// parse splits a stream into pages; their checksums are for others to check.
func parse(t *testing.T, b []byte) []page {
	t.Helper()
	var all []page
	for sequence := uint32(0); len(b) > 0; sequence++ {
		if string(b[:5]) != "OggS\x00" || binary.LittleEndian.Uint32(b[18:]) != sequence {
			t.Fatalf("page %d begins with % x", sequence, b[:26])
		}
		p := page{flags: b[5], granule: int64(binary.LittleEndian.Uint64(b[6:])), lacing: b[27:][:b[26]]}
		size := 0
		for _, n := range p.lacing {
			size += int(n)
		}
		b = b[27+len(p.lacing):]
		p.data, b = b[:size], b[size:]
		all = append(all, p)
	}
	return all
}

// TestPages checks flags and positions: the headers alone on their pages, half a second
// on each other page but the last, which is marked, and where the last ends.
func TestPages(t *testing.T) {
	count := 0
	for _, s := range signals(t) {
		all := parse(t, encode(t, s))
		n := int64(len(s.channels[0]))
		if all[0].flags != begin || string(all[0].data[:8]) != "OpusHead" || all[0].granule != 0 || all[1].flags != 0 || string(all[1].data[:8]) != "OpusTags" || all[1].granule != 0 {
			t.Errorf("%s: header pages %+v", s.name, all[:2])
		}
		packets := (n + 312 + frameSize - 1) / frameSize
		if want := 2 + int((packets+packetsPerPage-1)/packetsPerPage); len(all) != want {
			t.Errorf("%s: %d pages, want %d", s.name, len(all), want)
		}
		for i, p := range all[2:] {
			wantFlags, want := byte(0), int64(i+1)*packetsPerPage*frameSize
			if i == len(all)-3 {
				wantFlags, want = end, n+312
			}
			if p.flags != wantFlags || p.granule != want {
				t.Errorf("%s: audio page %d of %d: flags %d, position %d; want %d, %d", s.name, i, len(all)-2, p.flags, p.granule, wantFlags, want)
			}
		}
		count += len(all)
	}
	t.Logf("%d pages", count)
}

// TestLongTags has tags that take several pages, of lengths around their limits.
func TestLongTags(t *testing.T) {
	x, y := tones(5000)
	streams := 0
	const packet = 8 + 4 + 4 + 4 + len("LYRICS=") // without the value
	for _, n := range []int{254, 255, 256, 510, 255 * 254, 255*255 - 1, 255 * 255, 255*255 + 1, 255 * 510, 255*510 + 1, 200000} {
		value := strings.Repeat("l", n-packet)
		s := signal{config: Config{Channels: 2, Tags: [][2]string{{"LYRICS", value}}}, channels: [][]float32{x, y}}
		data := encode(t, s)
		tags := 0
		for _, p := range parse(t, data)[1:] {
			if p.flags&end != 0 {
				break
			}
			if continued := p.flags&continued != 0; continued != (tags > 0) {
				t.Errorf("%d bytes of tags: page %d has flags %d", n, tags, p.flags)
			}
			ends := len(p.lacing) < 255 || p.lacing[254] < 255
			if want := map[bool]int64{true: 0, false: -1}[ends]; p.granule != want {
				t.Errorf("%d bytes of tags: page %d has position %d, want %d", n, tags, p.granule, want)
			}
			tags++
		}
		if want := (n/255 + 1 + 254) / 255; tags != want {
			t.Errorf("%d bytes of tags take %d pages, want %d", n, tags, want)
		}
		text := audiotest.Run(t, nil, "opusinfo", audiotest.File(t, "song.opus", data))
		if !bytes.Contains(text, []byte("LYRICS="+value+"\n")) || bytes.Contains(text, []byte("WARNING")) {
			t.Errorf("%d bytes of tags: opusinfo does not find them: %.500s", n, text)
		}
		streams++
	}
	t.Logf("%d streams", streams)
}

// TestClamp writes samples far beyond full scale, which must be as those at it.
func TestClamp(t *testing.T) {
	x := audiotest.Noise(1, 10000, 1)
	y := slices.Clone(x)
	for i := 0; i < len(x); i += 100 {
		x[i], y[i] = 1, math.MaxFloat32
		x[i+1], y[i+1] = -1, -1.5
	}
	c := Config{Channels: 1}
	if !bytes.Equal(encode(t, signal{"", c, [][]float32{y}}), encode(t, signal{"", c, [][]float32{x}})) {
		t.Error("not clamped")
	}
}

// TestBlocks cuts streams into calls at random; the bytes must not differ.
func TestBlocks(t *testing.T) {
	blocks := 0
	for i, s := range signals(t) {
		whole := encode(t, s)
		var cut bytes.Buffer
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
		if !bytes.Equal(whole, cut.Bytes()) {
			t.Errorf("%s: the bytes differ when the samples come in blocks", s.name)
		}
	}
	t.Logf("%d blocks", blocks)
}

// TestBitrate measures what songs take: the constant says what libopus aims at over all
// kinds of sound.
func TestBitrate(t *testing.T) {
	for _, s := range signals(t)[:2] {
		rate := float64(len(encode(t, s))) * 8 * SampleRate / float64(len(s.channels[0]))
		want := float64(bitrate * len(s.channels))
		if rate < 0.8*want || rate > 1.4*want {
			t.Errorf("%s: %.0f bit/s, want about %.0f", s.name, rate, want)
		}
		t.Logf("%s: %.0f kbit/s", s.name, rate/1000)
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
		"0 channels":                      {},
		"3 channels":                      {Channels: 3},
		"input sample rate -1 Hz":         {Channels: 2, InputRate: -1},
		"bytes of tags: expected at most": {Channels: 2, Vendor: strings.Repeat("x", 120<<20)},
	} {
		if _, err := NewEncoder(io.Discard, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	e, err := NewEncoder(io.Discard, Config{Channels: 2})
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
	for _, room := range []int{10, 60, 200} {
		left, right := tones(48000)
		e, err := NewEncoder(&failing{room}, Config{Channels: 2})
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
