package audio

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// UnknownSize stands for the size of samples that are still being made.
const UnknownSize = -1

// Format tags of the fmt chunk (Microsoft, "Multimedia Programming Interface and
// Data Specifications 1.0" and its update of 1994).
const (
	tagPCM   = 1
	tagFloat = 3
)

// WAVHeader is everything before the samples of a WAV stream that holds dataBytes
// bytes of samples and nothing after them: 44 bytes for integers, 58 for floats,
// which by the standard need an extension size and a fact chunk. With [UnknownSize]
// all sizes are 0xFFFFFFFF, which players take as "until the end". It is an error
// when the size is no multiple of the frame's, or above what the 32-bit fields of a
// WAV file hold.
//
// An odd number of bytes (24-bit mono) must be followed by one zero byte.
func WAVHeader(f Format, dataBytes int64) ([]byte, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if dataBytes < 0 && dataBytes != UnknownSize {
		return nil, fmt.Errorf("audio: %d bytes of samples: expected 0 or more, or UnknownSize", dataBytes)
	}
	if dataBytes > 0 && dataBytes%int64(f.FrameBytes()) != 0 {
		return nil, fmt.Errorf("audio: %d bytes of samples: expected a multiple of the frame's %d bytes", dataBytes, f.FrameBytes())
	}
	return wavHeader(f, dataBytes, 0)
}

// wavHeader is WAVHeader for a valid size; after the samples come trailing bytes more.
func wavHeader(f Format, dataBytes, trailing int64) ([]byte, error) {
	const known = math.MaxUint32 - 1 // above is the mark of an unknown size
	le := binary.LittleEndian
	frame := uint32(f.FrameBytes())

	fmtSize, tag := uint32(16), uint16(tagPCM)
	headerBytes := int64(44)
	if f.Encoding == Float32 {
		fmtSize, tag = 18, tagFloat
		headerBytes = 44 + 2 + 12
	}
	riffSize, dataSize, frames := uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(math.MaxUint32)
	if dataBytes != UnknownSize {
		total := headerBytes - 8 + dataBytes + dataBytes%2 + trailing
		if total > known || total < 0 {
			return nil, fmt.Errorf("audio: %d bytes of samples are too many for a WAV file, which holds less than 4 GiB: use a shorter song, a lower sample rate or another format", dataBytes)
		}
		riffSize, dataSize, frames = uint32(total), uint32(dataBytes), uint32(dataBytes)/frame
	}

	b := make([]byte, 0, headerBytes)
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, riffSize)
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, fmtSize)
	b = le.AppendUint16(b, tag)
	b = le.AppendUint16(b, uint16(f.Channels))
	b = le.AppendUint32(b, uint32(f.SampleRate))
	b = le.AppendUint32(b, uint32(f.SampleRate)*frame)
	b = le.AppendUint16(b, uint16(frame))
	b = le.AppendUint16(b, uint16(8*f.Encoding.Bytes()))
	if f.Encoding == Float32 {
		b = le.AppendUint16(b, 0) // no extension
		b = append(b, "fact"...)
		b = le.AppendUint32(b, 4)
		b = le.AppendUint32(b, frames)
	}
	b = append(b, "data"...)
	return le.AppendUint32(b, dataSize), nil
}

// WriteWAV writes a whole WAV file, with m, unless it is nil, as a LIST INFO chunk
// behind the samples. Nothing is written when a sample is not finite, the channels
// do not fit the format, or the file would reach 4 GiB.
func WriteWAV(w io.WriteSeeker, f Format, m *Metadata, channels ...[]float32) error {
	if err := f.validate(); err != nil {
		return err
	}
	if len(channels) != f.Channels {
		return fmt.Errorf("audio: %d channels of samples: the format says %d", len(channels), f.Channels)
	}
	if err := checkSamples(channels); err != nil {
		return err
	}
	frames := len(channels[0])
	s, err := newWAVSink(w, f, m, int64(frames))
	if err != nil {
		return err
	}
	const block = 4096 // frames
	part := make([][]float32, len(channels))
	for lo := 0; lo < frames; lo += block {
		for c, x := range channels {
			part[c] = x[lo:min(lo+block, frames)]
		}
		if err := s.Write(part...); err != nil {
			return err
		}
	}
	return s.Close()
}

// wavSink writes a WAV file as its samples come.
type wavSink struct {
	pcmSink
	format  Format
	info    []byte         // the chunk behind the samples
	seeker  io.WriteSeeker // pcmSink.out, when its header can be completed at the end
	start   int64          // where in seeker the file begins
	known   bool           // the header is right already
	written int64          // bytes of samples
}

// newWAVSink writes the header of a file of the given number of frames, or UnknownSize.
func newWAVSink(w io.Writer, f Format, m *Metadata, frames int64) (*wavSink, error) {
	s := &wavSink{pcmSink: pcmSink{out: w, encoding: f.Encoding}, format: f, info: infoChunk(m), known: frames != UnknownSize}
	if seeker, ok := w.(io.WriteSeeker); ok && !s.known {
		// Pipes have the method too, and say only when it is called that they can't.
		if at, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			s.seeker, s.start = seeker, at
		}
	}
	dataBytes := int64(UnknownSize)
	if s.known {
		if frames > math.MaxUint32 {
			frames = math.MaxUint32 // too many in any case
		}
		dataBytes = frames * int64(f.FrameBytes())
	}
	header, err := wavHeader(f, dataBytes, int64(len(s.info)))
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, fmt.Errorf("audio: write WAV header: %w", err)
	}
	return s, nil
}

func (s *wavSink) Write(channels ...[]float32) error {
	size := s.written + int64(len(channels[0]))*int64(s.format.FrameBytes())
	if s.seeker != nil { // a header of this size will have to be written
		if _, err := wavHeader(s.format, size, int64(len(s.info))); err != nil {
			return err
		}
	}
	if err := s.pcmSink.Write(channels...); err != nil {
		return fmt.Errorf("audio: write WAV samples: %w", err)
	}
	s.written = size
	return nil
}

// Close writes what follows the samples, and the header again if it was not known. A
// stream that has neither simply ends: whatever followed would be heard.
func (s *wavSink) Close() error {
	if !s.known && s.seeker == nil {
		return nil
	}
	behind := s.info
	if s.written%2 != 0 { // chunks begin at even positions
		behind = append([]byte{0}, behind...)
	}
	if _, err := s.out.Write(behind); err != nil {
		return fmt.Errorf("audio: finish WAV file: %w", err)
	}
	if s.known {
		return nil
	}
	header, err := wavHeader(s.format, s.written, int64(len(s.info)))
	if err != nil {
		return err
	}
	end, err := s.seeker.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = s.seeker.Seek(s.start, io.SeekStart)
	}
	if err == nil {
		_, err = s.seeker.Write(header)
	}
	if err == nil {
		_, err = s.seeker.Seek(end, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("audio: complete WAV header: %w", err)
	}
	return nil
}
