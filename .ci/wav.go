//go:build ignore

// Command wav checks that each file it is given is a WAV file with a song in it:
// stereo, 44.1 kHz, at least a second long, neither silent nor constant.
package main

import (
	"fmt"
	"os"

	"github.com/go-audio/wav"

	"skald/host/audio"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "wav: name files")
		os.Exit(2)
	}
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	song, err := wav.NewDecoder(f).FullPCMBuffer()
	if err != nil {
		return err
	}
	if song.Format.NumChannels != 2 || song.Format.SampleRate != 44100 {
		return fmt.Errorf("%d channels at %d Hz, want 2 at 44100", song.Format.NumChannels, song.Format.SampleRate)
	}
	var channels [2][]float32
	for i, x := range song.Data {
		channels[i%2] = append(channels[i%2], float32(x)/float32(int(1)<<(song.SourceBitDepth-1)))
	}
	stats := audio.Measure(channels[0], channels[1])
	if err := stats.Err(); err != nil {
		return err
	}
	if stats.Samples < song.Format.SampleRate || stats.RMS < 0.01 {
		return fmt.Errorf("%d samples of level %.4f: too short or too quiet", stats.Samples, stats.RMS)
	}
	fmt.Printf("%s: %.1f s, level %.3f RMS, peak %.3f\n", path, float64(stats.Samples)/float64(song.Format.SampleRate), stats.RMS, stats.Peak)
	return nil
}
