package audio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"skald/host/audio/internal/audiotest"
	"skald/host/audio/resample"
)

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
