package audio

import (
	"fmt"
	"slices"
	"strings"

	"skald/host/audio/mp3"
	"skald/host/audio/opus"
	"skald/host/audio/resample"
)

// Container is how samples become a file or a stream.
type Container uint8

// The containers.
const (
	WAV  Container = iota + 1 // RIFF, uncompressed
	FLAC                      // lossless
	MP3
	Opus // in Ogg
	PCM  // samples and nothing else
)

var containerNames = [...]string{WAV: "wav", FLAC: "flac", MP3: "mp3", Opus: "opus", PCM: "pcm"}

// Containers returns all there are.
func Containers() []Container { return []Container{WAV, FLAC, MP3, Opus, PCM} }

// ParseContainer returns the container of the given name, which is also the suffix of
// its files without the dot.
func ParseContainer(name string) (Container, error) {
	if i := slices.Index(containerNames[1:], name); i >= 0 {
		return Container(i + 1), nil
	}
	return 0, fmt.Errorf("audio: unknown container %q: expected one of %s", name, strings.Join(containerNames[1:], ", "))
}

func (c Container) String() string {
	if c < WAV || c > PCM {
		return fmt.Sprintf("Container(%d)", uint8(c))
	}
	return containerNames[c]
}

// MediaType is the value of an HTTP Content-Type header.
func (c Container) MediaType() string {
	switch c {
	case MP3:
		return "audio/mpeg"
	case Opus:
		return "audio/ogg; codecs=opus"
	}
	return "audio/" + c.String()
}

// CheckSampleRate returns an error that tells what is possible for a rate, in Hz, that
// the container cannot have: MP3 has nine, Opus 48000 alone, and the others all rates
// that samples can be converted to.
func (c Container) CheckSampleRate(hz int) error {
	switch {
	case c == MP3:
		return mp3.CheckSampleRate(hz)
	case c == Opus && hz != opus.SampleRate:
		return fmt.Errorf("audio: sample rate %d Hz: opus is always %d", hz, opus.SampleRate)
	case hz < resample.MinRate || hz > resample.MaxRate:
		return fmt.Errorf("audio: sample rate %d Hz: expected %d to %d", hz, resample.MinRate, resample.MaxRate)
	}
	return nil
}
