package audio

import (
	"io"

	"skald/host/audio/flac"
	"skald/host/audio/mp3"
	"skald/host/audio/opus"
	"skald/host/audio/resample"
)

// newSink writes the header of what a complete configuration asks for.
func newSink(w io.Writer, c EncoderConfig) (sink, error) {
	frames := int64(UnknownSize)
	if c.Frames != 0 {
		frames = resample.Length(c.Frames, c.InputRate, c.SampleRate)
	}
	vendor, tags := "", [][2]string(nil)
	if c.Metadata != nil {
		vendor, tags = oneLine(c.Metadata.Software), c.Metadata.tags()
	}
	switch c.Container {
	case FLAC:
		e, err := flac.NewEncoder(w, flac.Config{
			SampleRate: c.SampleRate, Channels: c.Channels, BitsPerSample: 8 * c.Encoding.Bytes(),
			Samples: max(0, frames), Vendor: vendor, Tags: tags,
		})
		return &flacSink{encoder: e, encoding: c.Encoding}, err
	case MP3:
		return mp3.NewEncoder(w, mp3.Config{SampleRate: c.SampleRate, Channels: c.Channels, Tags: tags})
	case Opus:
		return opus.NewEncoder(w, opus.Config{Channels: c.Channels, InputRate: c.InputRate, Vendor: vendor, Tags: tags})
	case PCM:
		return &pcmSink{out: w, encoding: c.Encoding}, nil
	}
	f := Format{Encoding: c.Encoding, SampleRate: c.SampleRate, Channels: c.Channels}
	return newWAVSink(w, f, c.Metadata, frames)
}

// pcmSink writes samples and nothing else.
type pcmSink struct {
	out      io.Writer
	encoding Encoding
	buffer   []byte
}

func (s *pcmSink) Write(channels ...[]float32) error {
	var err error
	if s.buffer, err = AppendSamples(s.buffer[:0], s.encoding, channels...); err != nil {
		return err
	}
	_, err = s.out.Write(s.buffer)
	return err
}

func (s *pcmSink) Close() error { return nil }

// flacSink quantises as [AppendSamples] does.
type flacSink struct {
	encoder  *flac.Encoder
	encoding Encoding
	integers [][]int32
}

func (s *flacSink) Write(channels ...[]float32) error {
	if s.integers == nil {
		s.integers = make([][]int32, len(channels))
	}
	for c, x := range channels {
		s.integers[c] = s.integers[c][:0]
		for _, v := range x {
			s.integers[c] = append(s.integers[c], encode(s.encoding, v))
		}
	}
	return s.encoder.Write(s.integers...)
}

func (s *flacSink) Close() error { return s.encoder.Close() }
