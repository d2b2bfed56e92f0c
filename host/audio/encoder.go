package audio

import (
	"errors"
	"fmt"
	"io"

	"skald/host/audio/opus"
	"skald/host/audio/resample"
)

// EncoderConfig says what an [Encoder] takes and makes.
type EncoderConfig struct {
	Container Container

	// Encoding is that of the samples in WAV and PCM, and in FLAC, which has no floats;
	// PCM16 if it is zero. MP3 and Opus have none.
	Encoding Encoding

	Channels int // 1 or 2

	// InputRate is the sample rate of what is written to the encoder, and SampleRate
	// that of what comes out, both in Hz. Zero means InputRate, or for Opus 48000.
	InputRate  int
	SampleRate int

	// Frames is the number of samples of each channel that will be written, zero if
	// that is not known yet. WAV and FLAC say in their headers how long they are; a
	// writer that can seek lets them do so without Frames.
	Frames int64

	// Metadata goes into the file unless it is nil. PCM has no place for it, and a WAV
	// stream whose length is unknown has none either: it would have to follow the
	// samples.
	Metadata *Metadata
}

// Encoder turns the blocks of a song into the bytes of a file or a stream. It is not safe
// for concurrent use.
type Encoder struct {
	config    EncoderConfig
	resampler *resample.Resampler // nil if the rates are the same
	sink      sink
	taken     int64
	err       error // the first that occurred
	closed    bool
}

// sink writes finite samples at the rate of the file.
type sink interface {
	Write(channels ...[]float32) error
	Close() error
}

// NewEncoder writes the header, if the container has one. Whatever needs what is known
// only at the end - the length, the sum of FLAC, the tag of MP3 - is filled in by
// [Encoder.Close] when w can seek. Close must always be called.
func NewEncoder(w io.Writer, c EncoderConfig) (*Encoder, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	e := &Encoder{config: c}
	if c.SampleRate != c.InputRate {
		if e.resampler, err = resample.New(c.InputRate, c.SampleRate, c.Channels); err != nil {
			return nil, err
		}
	}
	if e.sink, err = newSink(w, c); err != nil {
		return nil, err
	}
	return e, nil
}

// complete fills in what is left to a default, and reports what does not go together.
func (c EncoderConfig) complete() (EncoderConfig, error) {
	if c.Container < WAV || c.Container > PCM {
		return c, fmt.Errorf("audio: unknown container %v", c.Container)
	}
	switch lossy := c.Container == MP3 || c.Container == Opus; {
	case lossy && c.Encoding != 0:
		return c, fmt.Errorf("audio: %v has no encoding of samples to choose: leave out %v", c.Container, c.Encoding)
	case c.Container == FLAC && c.Encoding == Float32:
		return c, errors.New("audio: flac has no 32-bit float: use PCM16 or PCM24")
	case !lossy && c.Encoding == 0:
		c.Encoding = PCM16
	case !lossy && c.Encoding.Bytes() == 0:
		return c, fmt.Errorf("audio: unknown encoding %v: use PCM16, PCM24 or Float32", c.Encoding)
	}
	if c.Channels != 1 && c.Channels != 2 {
		return c, fmt.Errorf("audio: %d channels: expected 1 or 2", c.Channels)
	}
	if c.SampleRate == 0 {
		c.SampleRate = c.InputRate
		if c.Container == Opus {
			c.SampleRate = opus.SampleRate
		}
	}
	if err := c.Container.CheckSampleRate(c.SampleRate); err != nil {
		return c, err
	}
	const mostFrames = 1<<36 - 1 // FLAC's limit; at 96 kHz eight days
	if c.Frames < 0 || c.Frames > mostFrames {
		return c, fmt.Errorf("audio: %d frames: expected 0, for unknown, or their number, at most 2^36-1", c.Frames)
	}
	return c, nil
}

// SampleRate is that of what comes out, in Hz.
func (e *Encoder) SampleRate() int { return e.config.SampleRate }

// Write takes the next samples, one equally long slice for each channel, full scale from
// -1 to 1; what lies beyond is clamped, and what is not finite is an error. How samples
// are cut into calls does not change the bytes that come out.
func (e *Encoder) Write(channels ...[]float32) error {
	if e.err != nil {
		return e.err
	}
	if e.closed {
		return errors.New("audio: write after Close")
	}
	if len(channels) != e.config.Channels {
		return fmt.Errorf("audio: %d channels of samples: expected %d", len(channels), e.config.Channels)
	}
	if err := checkSamples(channels); err != nil {
		return fmt.Errorf("in the block that begins with sample %d: %w", e.taken, err)
	}
	e.taken += int64(len(channels[0]))
	if e.resampler != nil {
		if channels, e.err = e.resampler.Process(channels...); e.err != nil {
			return e.err
		}
	}
	e.err = e.sink.Write(channels...)
	return e.err
}

// Close writes what is left and releases the encoder; it does not close the underlying
// writer. It is an error if Frames was given and another number was written. After an
// error of Write, Close returns that one.
func (e *Encoder) Close() error {
	if e.closed {
		return e.err
	}
	e.closed = true
	if e.err == nil && e.config.Frames != 0 && e.config.Frames != e.taken {
		e.err = fmt.Errorf("audio: %d samples of each channel were written: %d were announced", e.taken, e.config.Frames)
	}
	if e.err == nil && e.resampler != nil {
		e.err = e.sink.Write(e.resampler.Flush()...)
	}
	// The sink is closed in any case, since it may hold what must be released.
	if err := e.sink.Close(); e.err == nil {
		e.err = err
	}
	return e.err
}

// Encode returns the whole file of a song, its header complete. Frames need not be set.
func Encode(c EncoderConfig, channels ...[]float32) ([]byte, error) {
	if len(channels) > 0 {
		c.Frames = int64(len(channels[0]))
	}
	var b Buffer
	e, err := NewEncoder(&b, c)
	if err != nil {
		return nil, err
	}
	if err := e.Write(channels...); err != nil {
		_ = e.Close()
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
