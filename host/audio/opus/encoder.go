// Package opus writes Ogg Opus streams (RFC 7845) as the samples come. The packets are
// made by github.com/thesyncim/gopus, in Go alone; the pages by this package, with the
// pre-skip, the positions and the end that let a player play exactly the samples given.
package opus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/thesyncim/gopus"
)

// SampleRate is that of every stream, in Hz.
const SampleRate = 48000

const (
	frameSize = SampleRate / 50 // samples of each channel in a packet: 20 ms
	// packetsPerPage makes a page of half a second. Fewer would let a listener wait
	// less and take more bytes.
	packetsPerPage = 25
	largestPacket  = 1275 // bytes
	// bitrate is what each channel takes on average over all kinds of sound, in bit/s:
	// hard to tell from the original. Songs take up to a third more.
	bitrate = 64000
)

// Config describes a stream.
type Config struct {
	Channels int // 1 or 2

	// InputRate is the sample rate, in Hz, that the samples had before they came to
	// 48 kHz; 0 if that is unknown. Players may show it.
	InputRate int

	// Vendor names the program, and Tags are the Vorbis comments: names in ASCII
	// without "=", such as TITLE, and values in UTF-8.
	Vendor string
	Tags   [][2]string
}

// Encoder writes one stream. It is not safe for concurrent use.
type Encoder struct {
	channels int
	pages    pages
	packets  *gopus.Encoder
	preSkip  int

	pending [][]byte  // packets of the next page
	frame   []float32 // interleaved, less than a packet's
	samples int64     // taken, of each channel
	encoded int64     // samples in packets so far, of each channel
	err     error     // the first that occurred
	closed  bool
}

// NewEncoder writes the headers. The streams of equal configurations have equal serial
// numbers, so that equal songs have equal bytes.
func NewEncoder(w io.Writer, c Config) (*Encoder, error) {
	if c.Channels != 1 && c.Channels != 2 {
		return nil, fmt.Errorf("opus: %d channels: expected 1 or 2", c.Channels)
	}
	if c.InputRate < 0 || int64(c.InputRate) > 1<<32-1 {
		return nil, fmt.Errorf("opus: input sample rate %d Hz: expected 0, if unknown, or a rate of 32 bits", c.InputRate)
	}
	packets, err := gopus.NewEncoder(gopus.EncoderConfig{
		SampleRate: SampleRate, Channels: c.Channels, Application: gopus.ApplicationAudio,
	})
	if err == nil {
		err = errors.Join(
			packets.SetFrameSize(frameSize),
			packets.SetBitrate(bitrate*c.Channels),
			packets.SetComplexity(10),
			packets.SetSignal(gopus.SignalMusic),
		)
	}
	if err != nil {
		return nil, fmt.Errorf("opus: %w", err)
	}
	packets.SetVBR(true)
	packets.SetVBRConstraint(false)

	tags := tagsPacket(c)
	const most = 120 << 20 // what RFC 7845 lets players refuse above
	if len(tags) > most {
		return nil, fmt.Errorf("opus: %d bytes of tags: expected at most %d", len(tags), most)
	}
	e := &Encoder{
		channels: c.Channels,
		pages:    pages{out: w, serial: crc32.ChecksumIEEE(tags)},
		packets:  packets,
		preSkip:  packets.Lookahead(),
	}
	err = e.pages.write([][]byte{headPacket(c, e.preSkip)}, 0, begin)
	if err == nil {
		err = e.pages.write([][]byte{tags}, 0, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("opus: write header: %w", err)
	}
	return e, nil
}

// headPacket is the identification header (RFC 7845, section 5.1).
func headPacket(c Config, preSkip int) []byte {
	b := append([]byte("OpusHead\x01"), byte(c.Channels))
	b = binary.LittleEndian.AppendUint16(b, uint16(preSkip))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.InputRate))
	return append(b, 0, 0, 0) // no gain, the mapping of mono and stereo
}

// tagsPacket is the comment header (RFC 7845, section 5.2).
func tagsPacket(c Config) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("OpusTags"), uint32(len(c.Vendor)))
	b = append(b, c.Vendor...)
	b = le.AppendUint32(b, uint32(len(c.Tags)))
	for _, tag := range c.Tags {
		b = le.AppendUint32(b, uint32(len(tag[0])+1+len(tag[1])))
		b = append(b, tag[0]...)
		b = append(b, '=')
		b = append(b, tag[1]...)
	}
	return b
}

// Write takes the next samples at 48 kHz, one equally long slice for each channel, full
// scale from -1 to 1; what lies beyond is clamped, and what is not finite is an error. How
// samples are cut into calls does not change the stream.
func (e *Encoder) Write(channels ...[]float32) error {
	if e.err != nil {
		return e.err
	}
	if e.closed {
		return errors.New("opus: write after Close")
	}
	if len(channels) != e.channels {
		return fmt.Errorf("opus: %d channels of samples: expected %d", len(channels), e.channels)
	}
	for c, x := range channels {
		if len(x) != len(channels[0]) {
			return fmt.Errorf("opus: channel %d has %d samples, channel 0 has %d: expected as many", c, len(x), len(channels[0]))
		}
		for i, v := range x {
			if v-v != 0 {
				return fmt.Errorf("opus: sample %d of channel %d is %v: expected a finite number", i, c, v)
			}
		}
	}
	for i := range channels[0] {
		for _, x := range channels {
			e.frame = append(e.frame, min(max(x[i], -1), 1))
		}
		e.samples++
		if len(e.frame) == frameSize*e.channels {
			if e.err = e.encode(); e.err != nil {
				return e.err
			}
		}
	}
	return nil
}

// encode makes a packet of a whole frame. A full page waits for the next packet, since
// the last page of the stream must say that it is.
func (e *Encoder) encode() error {
	if len(e.pending) == packetsPerPage {
		if err := e.page(e.encoded, 0); err != nil {
			return err
		}
	}
	packet := make([]byte, largestPacket)
	n, err := e.packets.Encode(e.frame, packet)
	if err == nil && n == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("opus: packet at sample %d: %w", e.encoded, err)
	}
	e.pending = append(e.pending, packet[:n])
	e.encoded += frameSize
	e.frame = e.frame[:0]
	return nil
}

// page writes the pending packets.
func (e *Encoder) page(granule int64, flags byte) error {
	if err := e.pages.write(e.pending, granule, flags); err != nil {
		return fmt.Errorf("opus: write: %w", err)
	}
	e.pending = e.pending[:0]
	return nil
}

// Close writes the rest. It does not close the underlying writer.
func (e *Encoder) Close() error {
	if e.closed || e.err != nil {
		e.closed = true
		return e.err
	}
	e.closed = true
	// The decoder gives sample i out as sample preSkip+i, so silence must follow until
	// the last is out. The final position tells where it ends.
	last := int64(e.preSkip) + e.samples
	for e.encoded < last {
		e.frame = append(e.frame, make([]float32, frameSize*e.channels-len(e.frame))...)
		if e.err = e.encode(); e.err != nil {
			return e.err
		}
	}
	e.err = e.page(last, end)
	return e.err
}
