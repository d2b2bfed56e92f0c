// Package flac writes FLAC streams (RFC 9639) as the samples come.
//
// The bits are put together by github.com/mewkiz/flac. What makes a file small is found
// here, for every block: how to split stereo into two less alike signals, how to predict
// each (polynomials or linear prediction fitted to the block), and how to cut what is
// left into Rice partitions. Files are between those of `flac -5` and `flac -8` in size.
package flac

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// blockSize is the number of samples, of each channel, in every frame but the last.
const blockSize = 4096

// MaxSampleRate is what the header's 20 bits hold, in Hz.
const MaxSampleRate = 1<<20 - 1

// Config describes a stream.
type Config struct {
	SampleRate    int // Hz, 1 to MaxSampleRate
	Channels      int // 1 to 8
	BitsPerSample int // 16 or 24

	// Samples is the number of samples of each channel; 0 when it isn't known yet.
	Samples int64

	// Vendor names the program, and Tags are the Vorbis comments: names in ASCII
	// without "=", such as TITLE, and values in UTF-8.
	Vendor string
	Tags   [][2]string
}

// Encoder writes one stream. It is not safe for concurrent use.
type Encoder struct {
	config  Config
	out     io.Writer
	seeker  io.WriteSeeker // out, when its header can be completed at the end
	start   int64          // where in seeker the stream begins
	frames  *flac.Encoder  // writes to buffer
	buffer  bytes.Buffer
	pending [][]int32 // by channel: less than a block of samples

	samples           int64 // encoded, of each channel
	smallest, largest uint32
	sum               hash.Hash
	interleaved       []byte
	analysis          analysis
	err               error // the first that occurred
	closed            bool
}

// NewEncoder writes the header. When w can seek, [Encoder.Close] completes it with the
// number of samples, the sizes of frames and the MD5 sum of the samples; otherwise it
// keeps the number that the configuration gives, and zeros, which stand for unknown.
func NewEncoder(w io.Writer, c Config) (*Encoder, error) {
	switch {
	case c.SampleRate < 1 || c.SampleRate > MaxSampleRate:
		return nil, fmt.Errorf("flac: sample rate %d Hz: expected 1 to %d", c.SampleRate, MaxSampleRate)
	case c.Channels < 1 || c.Channels > 8:
		return nil, fmt.Errorf("flac: %d channels: expected 1 to 8", c.Channels)
	case c.BitsPerSample != 16 && c.BitsPerSample != 24:
		return nil, fmt.Errorf("flac: %d bits per sample: expected 16 or 24", c.BitsPerSample)
	case c.Samples < 0 || c.Samples >= 1<<36:
		return nil, fmt.Errorf("flac: %d samples: expected 0, for an unknown number, to 2^36-1", c.Samples)
	}
	e := &Encoder{config: c, out: w, sum: md5.New(), pending: make([][]int32, c.Channels)}
	if seeker, ok := w.(io.WriteSeeker); ok {
		// Pipes have the method too, and say only when it is called that they can't.
		if at, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			e.seeker, e.start = seeker, at
		}
	}
	info := e.info()
	info.NSamples = uint64(c.Samples)
	header, err := header(info, c)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, fmt.Errorf("flac: write header: %w", err)
	}
	e.frames, err = flac.NewEncoder(&e.buffer, info)
	if err != nil {
		return nil, fmt.Errorf("flac: %w", err)
	}
	e.frames.EnablePredictionAnalysis(false)
	return e, nil
}

// info is the part of the header that is known from the beginning.
func (e *Encoder) info() *meta.StreamInfo {
	return &meta.StreamInfo{
		BlockSizeMin: blockSize, BlockSizeMax: blockSize,
		SampleRate: uint32(e.config.SampleRate), NChannels: uint8(e.config.Channels),
		BitsPerSample: uint8(e.config.BitsPerSample),
	}
}

// header is everything before the first frame.
func header(info *meta.StreamInfo, c Config) ([]byte, error) {
	length := 8 + len(c.Vendor)
	for _, tag := range c.Tags {
		length += 4 + len(tag[0]) + 1 + len(tag[1])
	}
	const most = 1<<24 - 1
	if length > most {
		return nil, fmt.Errorf("flac: %d bytes of tags: expected at most %d", length, most)
	}
	comments := &meta.Block{
		Header: meta.Header{Type: meta.TypeVorbisComment, Length: int64(length)},
		Body:   &meta.VorbisComment{Vendor: c.Vendor, Tags: c.Tags},
	}
	var b bytes.Buffer
	if _, err := flac.NewEncoder(&b, info, comments); err != nil {
		return nil, fmt.Errorf("flac: %w", err)
	}
	return b.Bytes(), nil
}

// Write takes the next samples, one equally long slice for each channel: integers of
// BitsPerSample bits. How samples are cut into calls does not change the stream.
func (e *Encoder) Write(channels ...[]int32) error {
	if e.err != nil {
		return e.err
	}
	if e.closed {
		return errors.New("flac: write after Close")
	}
	if err := e.check(channels); err != nil {
		return err
	}
	for at := 0; at < len(channels[0]); {
		n := min(len(channels[0])-at, blockSize-len(e.pending[0]))
		for c := range channels {
			e.pending[c] = append(e.pending[c], channels[c][at:at+n]...)
		}
		at += n
		if len(e.pending[0]) == blockSize {
			if e.err = e.writeFrame(); e.err != nil {
				return e.err
			}
		}
	}
	return nil
}

func (e *Encoder) check(channels [][]int32) error {
	if len(channels) != e.config.Channels {
		return fmt.Errorf("flac: %d channels of samples: expected %d", len(channels), e.config.Channels)
	}
	limit := int32(1) << (e.config.BitsPerSample - 1)
	for c, x := range channels {
		if len(x) != len(channels[0]) {
			return fmt.Errorf("flac: channel %d has %d samples, channel 0 has %d: expected as many", c, len(x), len(channels[0]))
		}
		for i, v := range x {
			if v < -limit || v >= limit {
				return fmt.Errorf("flac: sample %d of channel %d is %d: expected %d bits, %d to %d", i, c, v, e.config.BitsPerSample, -limit, limit-1)
			}
		}
	}
	return nil
}

// writeFrame encodes the pending samples.
func (e *Encoder) writeFrame() error {
	n := len(e.pending[0])
	e.hash()
	f := &frame.Frame{Header: frame.Header{
		HasFixedBlockSize: true,
		BlockSize:         uint16(n),
		SampleRate:        frameRate(e.config.SampleRate),
		BitsPerSample:     uint8(e.config.BitsPerSample),
	}}
	var headers []frame.SubHeader
	f.Channels, headers = e.analysis.analyze(e.pending, e.config.BitsPerSample)
	for c, x := range e.pending {
		f.Subframes = append(f.Subframes, &frame.Subframe{SubHeader: headers[c], Samples: x, NSamples: n})
	}
	e.buffer.Reset()
	if err := e.frames.WriteFrame(f); err != nil {
		return fmt.Errorf("flac: frame at sample %d: %w", e.samples, err)
	}
	size := uint32(e.buffer.Len())
	if e.smallest == 0 || size < e.smallest {
		e.smallest = size
	}
	e.largest = max(e.largest, size)
	e.samples += int64(n)
	for c := range e.pending {
		e.pending[c] = e.pending[c][:0]
	}
	if _, err := e.out.Write(e.buffer.Bytes()); err != nil {
		return fmt.Errorf("flac: write: %w", err)
	}
	return nil
}

// frameRate is the sample rate for a frame's header: 0, which refers to the stream's,
// for those that it has no code for.
func frameRate(hz int) uint32 {
	if hz > 1<<16-1 && hz%10 != 0 && hz%1000 != 0 || hz > 655350 {
		return 0
	}
	return uint32(hz)
}

// hash adds the pending samples, interleaved and little-endian, to the MD5 sum.
func (e *Encoder) hash() {
	b := e.interleaved[:0]
	for i := range e.pending[0] {
		for _, x := range e.pending {
			if e.config.BitsPerSample == 16 {
				b = binary.LittleEndian.AppendUint16(b, uint16(x[i]))
			} else {
				b = append(b, byte(x[i]), byte(x[i]>>8), byte(x[i]>>16))
			}
		}
	}
	e.sum.Write(b)
	e.interleaved = b
}

// Close writes the last frame and completes the header where it can. It does not close
// the underlying writer. When fewer or more samples came than the configuration says,
// and the header cannot be changed any more, that is an error.
func (e *Encoder) Close() error {
	if e.closed || e.err != nil {
		e.closed = true
		return e.err
	}
	e.closed = true
	if len(e.pending[0]) > 0 {
		if e.err = e.writeFrame(); e.err != nil {
			return e.err
		}
	}
	if e.seeker != nil {
		e.err = e.completeHeader()
	} else if e.config.Samples != 0 && e.samples != e.config.Samples {
		e.err = fmt.Errorf("flac: %d samples were written, the header promises %d", e.samples, e.config.Samples)
	}
	return e.err
}

func (e *Encoder) completeHeader() error {
	info := e.info()
	info.FrameSizeMin, info.FrameSizeMax = e.smallest, e.largest
	info.NSamples = uint64(e.samples)
	e.sum.Sum(info.MD5sum[:0])
	header, err := header(info, e.config)
	if err != nil {
		return err
	}
	end, err := e.seeker.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = e.seeker.Seek(e.start, io.SeekStart)
	}
	if err == nil {
		_, err = e.seeker.Write(header)
	}
	if err == nil {
		_, err = e.seeker.Seek(end, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("flac: complete the header: %w", err)
	}
	return nil
}
