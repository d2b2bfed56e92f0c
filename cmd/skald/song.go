package main

import (
	"io"
	"path/filepath"
	"strings"

	"skald/host/audio"
	"skald/host/engine"
)

// writeSong writes a song's samples to a file.
type writeSong func(io.WriteSeeker, *engine.Song, engine.Info) error

// songWriter chooses by a file's suffix. wavFormat is that of --wav-format, asked that
// the user gave it.
func songWriter(path, wavFormat string, asked bool) (writeSong, error) {
	encoding := map[string]audio.Encoding{
		"pcm16": audio.PCM16, "pcm24": audio.PCM24, "float32": audio.Float32,
	}[wavFormat]
	switch suffix := strings.ToLower(filepath.Ext(path)); suffix {
	case ".wav":
		return func(w io.WriteSeeker, song *engine.Song, info engine.Info) error {
			return writeWAV(w, encoding, song, info)
		}, nil
	case ".pcm":
		if asked {
			return nil, usagef("--wav-format is for .wav files, not for %s", path)
		}
		return writePCM, nil
	default:
		return nil, usagef("--output %s: the suffix must be .wav or .pcm", path)
	}
}

func writeWAV(w io.WriteSeeker, encoding audio.Encoding, song *engine.Song, info engine.Info) error {
	format := audio.Format{Encoding: encoding, SampleRate: song.SampleRate, Channels: len(song.Samples)}
	about := &audio.Metadata{Title: "Song", Model: info.Name, Seed: song.Seed, Software: "skald " + readBuildFacts().Version}
	return audio.WriteWAV(w, format, about, song.Samples[:]...)
}

func writePCM(w io.WriteSeeker, song *engine.Song, _ engine.Info) error {
	data, err := audio.AppendSamples(nil, audio.PCM16, song.Samples[:]...)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
