package audio

import (
	"fmt"
	"math"
)

// Encoding is how one sample is stored, little-endian.
type Encoding uint8

// The encodings. The integers are signed.
const (
	PCM16   Encoding = iota + 1 // 16-bit integer
	PCM24                       // 24-bit integer in 3 bytes
	Float32                     // IEEE 754
)

// Bytes is the size of one sample.
func (e Encoding) Bytes() int {
	switch e {
	case PCM16:
		return 2
	case PCM24:
		return 3
	case Float32:
		return 4
	}
	return 0
}

func (e Encoding) String() string {
	switch e {
	case PCM16:
		return "16-bit PCM"
	case PCM24:
		return "24-bit PCM"
	case Float32:
		return "32-bit float"
	}
	return fmt.Sprintf("Encoding(%d)", uint8(e))
}

// Format describes a stream of interleaved samples.
type Format struct {
	Encoding   Encoding
	SampleRate int // Hz
	Channels   int
}

// FrameBytes is the size of one frame: one sample of every channel.
func (f Format) FrameBytes() int { return f.Encoding.Bytes() * f.Channels }

// validate reports a format that a WAV header cannot express.
func (f Format) validate() error {
	switch {
	case f.Encoding.Bytes() == 0:
		return fmt.Errorf("audio: unknown encoding %v: use PCM16, PCM24 or Float32", f.Encoding)
	case f.Channels < 1 || f.Channels > math.MaxUint16/4:
		return fmt.Errorf("audio: %d channels: expected 1 to %d", f.Channels, math.MaxUint16/4)
	case f.SampleRate < 1 || int64(f.SampleRate)*int64(f.FrameBytes()) > math.MaxUint32:
		return fmt.Errorf("audio: sample rate %d Hz with %d bytes a frame: expected a positive rate and less than 4 GiB a second",
			f.SampleRate, f.FrameBytes())
	}
	return nil
}
