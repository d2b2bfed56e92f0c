package audio_test

import (
	"bytes"
	"fmt"
	"log"
	"math"
	"os"

	"skald/host/audio"
)

// A reply that is sent while the song is made: one header, then the bytes of one
// window after the other.
func ExampleWAVHeader() {
	f := audio.Format{Encoding: audio.PCM16, SampleRate: 44100, Channels: 2}
	var reply bytes.Buffer
	header, err := audio.WAVHeader(f, audio.UnknownSize)
	if err != nil {
		log.Fatal(err)
	}
	reply.Write(header)
	for range 2 {
		left, right := make([]float32, 1536), make([]float32, 1536)
		samples, err := audio.AppendSamples(nil, f.Encoding, left, right)
		if err != nil {
			log.Fatal(err)
		}
		reply.Write(samples)
	}
	fmt.Println(reply.Len(), "bytes")
	// Output: 12332 bytes
}

func ExampleAppendSamples() {
	left, right := []float32{0, 0.5}, []float32{1, -1}
	b, err := audio.AppendSamples(nil, audio.PCM16, left, right)
	fmt.Printf("% x %v\n", b, err)
	// Output: 00 00 ff 7f 00 40 01 80 <nil>
}

func ExampleWriteWAV() {
	song := make([]float32, 44100)
	for i := range song {
		song[i] = float32(math.Sin(2 * math.Pi * 440 * float64(i) / 44100))
	}
	if err := audio.Measure(song, song).Err(); err != nil {
		log.Fatal(err)
	}
	file, err := os.CreateTemp("", "song-*.wav")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	f := audio.Format{Encoding: audio.PCM24, SampleRate: 44100, Channels: 2}
	m := &audio.Metadata{Title: "A 440", Model: "MiniMax-Music3", Seed: 42, Software: "skald"}
	if err := audio.WriteWAV(file, f, m, song, song); err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Comment())
	// Output: machine-made, model MiniMax-Music3, seed 42
}

func ExampleMeasure() {
	left := []float32{0.1, 0.2, float32(math.NaN())}
	right := []float32{0.1, 0.2, 0.3}
	fmt.Println(audio.Measure(left, right).Err())
	// Output: audio: sample 2 of channel 0 is not finite, the first of 1 such samples
}

// A song is sent as FLAC while it is made, window by window, at another sample rate than
// the vocoder's.
func ExampleEncoder() {
	var reply bytes.Buffer
	e, err := audio.NewEncoder(&reply, audio.EncoderConfig{
		Container: audio.FLAC, Channels: 2, InputRate: 44100, SampleRate: 48000,
		Metadata: &audio.Metadata{Title: "Night train", Model: "MiniMax-Music3", Seed: 42, Software: "skald"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		left, right := make([]float32, 15360), make([]float32, 15360)
		if err := e.Write(left, right); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %s\n", audio.FLAC.MediaType(), reply.Bytes()[:4])
	// Output: audio/flac, fLaC
}

func ExampleEncode() {
	song := make([]float32, 44100)
	for i := range song {
		song[i] = float32(math.Sin(2 * math.Pi * 440 * float64(i) / 44100))
	}
	file, err := audio.Encode(audio.EncoderConfig{Container: audio.WAV, Channels: 1, InputRate: 44100, SampleRate: 8000}, song)
	fmt.Println(len(file), err)
	// Output: 16044 <nil>
}
