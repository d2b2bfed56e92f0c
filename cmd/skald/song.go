package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"skald/host/audio"
	"skald/host/engine"
)

// songFormat is what the flags say about the file of a song.
type songFormat struct {
	container  audio.Container
	encoding   audio.Encoding // 0: the container's usual one
	sampleRate int            // 0: the model's own
}

// suffixes lists those of the files that can be written, without dots.
func suffixes() (names []string) {
	for _, c := range audio.Containers() {
		names = append(names, c.String())
	}
	return names
}

// format reads the container from the file's suffix and checks what belongs to it.
func (f *singFlags) format(cmd *cobra.Command) (songFormat, error) {
	suffix := strings.TrimPrefix(strings.ToLower(filepath.Ext(f.output)), ".")
	container, err := audio.ParseContainer(suffix)
	if err != nil {
		return songFormat{}, usagef("--output %s: the suffix must be one of .%s", f.output, strings.Join(suffixes(), " ."))
	}
	format := songFormat{container: container, sampleRate: f.sampleRate}
	if container == audio.WAV {
		format.encoding = map[string]audio.Encoding{
			"pcm16": audio.PCM16, "pcm24": audio.PCM24, "float32": audio.Float32,
		}[f.wavFormat.value]
	} else if cmd.Flags().Changed("wav-format") {
		return songFormat{}, usagef("--wav-format is for .wav files, not for %s", f.output)
	}
	if f.sampleRate != 0 {
		if err := container.CheckSampleRate(f.sampleRate); err != nil {
			return songFormat{}, usagef("--sample-rate: %w", err)
		}
	}
	return format, nil
}

// write encodes a whole song.
func (f songFormat) write(w io.Writer, song *engine.Song, info engine.Info) (err error) {
	e, err := audio.NewEncoder(w, audio.EncoderConfig{
		Container: f.container, Encoding: f.encoding, Channels: len(song.Samples),
		InputRate: song.SampleRate, SampleRate: f.sampleRate, Frames: int64(len(song.Samples[0])),
		Metadata: &audio.Metadata{
			Title: "Song", Model: info.Name, Seed: song.Seed, Software: "skald " + readBuildFacts().Version,
		},
	})
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return e.Write(song.Samples[:]...)
}
