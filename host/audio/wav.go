package audio

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	goaudio "github.com/go-audio/audio"
	"github.com/go-audio/wav"
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
	info := infoStrings(m)
	dataBytes := int64(len(channels[0])) * int64(f.FrameBytes())
	header, err := wavHeader(f, dataBytes, infoBytes(info))
	if err != nil {
		return err
	}

	tag := tagPCM
	if f.Encoding == Float32 {
		tag = tagFloat
	}
	enc := wav.NewEncoder(w, f.SampleRate, 8*f.Encoding.Bytes(), f.Channels, tag)
	enc.Metadata = info
	// The encoder would write a header without what floats need. Finding bytes
	// written it leaves that out, and begins with the data chunk.
	if err := enc.AddLE(header[:len(header)-8]); err != nil {
		return fmt.Errorf("audio: write WAV header: %w", err)
	}
	const chunk = 4096 // frames
	buf := &goaudio.IntBuffer{
		Format: &goaudio.Format{NumChannels: f.Channels, SampleRate: f.SampleRate},
		Data:   make([]int, 0, chunk*f.Channels),
	}
	for lo := 0; lo == 0 || lo < len(channels[0]); lo += chunk {
		buf.Data = buf.Data[:0]
		for i := lo; i < min(lo+chunk, len(channels[0])); i++ {
			for _, c := range channels {
				buf.Data = append(buf.Data, int(encode(f.Encoding, c[i])))
			}
		}
		if err := enc.Write(buf); err != nil {
			return fmt.Errorf("audio: write WAV samples: %w", err)
		}
	}
	if dataBytes%2 != 0 { // chunks begin at even positions
		if err := enc.AddLE(uint8(0)); err != nil {
			return fmt.Errorf("audio: write WAV samples: %w", err)
		}
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("audio: finish WAV file: %w", err)
	}
	return nil
}
