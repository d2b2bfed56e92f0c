// Package mp3 writes MP3 streams as the samples come, with LAME: variable bit rate,
// quality 2 of 0 to 9, which is about 190 kbit/s for stereo at 44.1 kHz.
//
// LAME is compiled to WebAssembly and runs in wazero, without cgo; see the folder lame.
// The bytes do not depend on the kind of processor.
package mp3

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// quality is LAME's -V.
const quality = 2

// sampleRates are those of MPEG-2.5, MPEG-2 and MPEG-1 in Hz.
var sampleRates = [...]int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}

// CheckSampleRate returns an error that names the possible rates for one that the format
// does not have.
func CheckSampleRate(hz int) error {
	if !slices.Contains(sampleRates[:], hz) {
		return fmt.Errorf("mp3: sample rate %d Hz: expected one of %v", hz, sampleRates)
	}
	return nil
}

// Config describes a stream.
type Config struct {
	SampleRate int // Hz, see CheckSampleRate
	Channels   int // 1 or 2

	// Tags are names and values, written as ID3 version 2.4: TITLE, COMMENT and ENCODER
	// as the frames for these, others as user-defined texts.
	Tags [][2]string
}

// Encoder writes one stream. It is not safe for concurrent use.
type Encoder struct {
	config Config
	out    io.Writer
	seeker io.WriteSeeker // out, when the tag can be filled in at the end
	tagAt  int64          // where in seeker the tag is
	lame   *lame
	buffer []byte
	err    error // the first that occurred
	closed bool
}

// NewEncoder writes the ID3 tag. [Encoder.Close] must be called, after an error too:
// until then LAME's half a megabyte cannot be collected.
//
// A decoder's output begins late, by what encoder and decoder delay, and ends late. When
// w can seek, the first frame is a tag, usually named after Xing, that tells players the
// number of frames and of samples to drop at both ends, so that they play exactly the
// samples given. Its numbers are known at the end, when Close fills it in. When w cannot
// seek there is no such tag, as in any live stream: a tag with a wrong length would be
// believed.
func NewEncoder(w io.Writer, c Config) (*Encoder, error) {
	if err := CheckSampleRate(c.SampleRate); err != nil {
		return nil, err
	}
	if c.Channels != 1 && c.Channels != 2 {
		return nil, fmt.Errorf("mp3: %d channels: expected 1 or 2", c.Channels)
	}
	tag, err := id3(c.Tags)
	if err != nil {
		return nil, err
	}
	e := &Encoder{config: c, out: w}
	if seeker, ok := w.(io.WriteSeeker); ok {
		// Pipes have the method too, and say only when it is called that they can't.
		if at, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			e.seeker, e.tagAt = seeker, at+int64(len(tag))
		}
	}
	if e.lame, err = newLAME(c.SampleRate, c.Channels, e.seeker != nil); err != nil {
		return nil, err
	}
	if _, err := w.Write(tag); err != nil {
		e.lame.close()
		return nil, fmt.Errorf("mp3: write: %w", err)
	}
	return e, nil
}

// Write takes the next samples, one equally long slice for each channel, full scale from
// -1 to 1; what lies beyond is clamped, and what is not finite is an error. How samples
// are cut into calls does not change the stream.
func (e *Encoder) Write(channels ...[]float32) error {
	if e.err != nil {
		return e.err
	}
	if e.closed {
		return errors.New("mp3: write after Close")
	}
	if len(channels) != e.config.Channels {
		return fmt.Errorf("mp3: %d channels of samples: expected %d", len(channels), e.config.Channels)
	}
	for c, x := range channels {
		if len(x) != len(channels[0]) {
			return fmt.Errorf("mp3: channel %d has %d samples, channel 0 has %d: expected as many", c, len(x), len(channels[0]))
		}
		for i, v := range x {
			if v-v != 0 {
				return fmt.Errorf("mp3: sample %d of channel %d is %v: expected a finite number", i, c, v)
			}
		}
	}
	block := make([][]float32, len(channels))
	e.buffer = e.buffer[:0]
	for at := 0; at < len(channels[0]); at += blockSize {
		for c, x := range channels {
			block[c] = x[at:min(at+blockSize, len(x))]
		}
		if e.buffer, e.err = e.lame.encode(e.buffer, block); e.err != nil {
			return e.err
		}
	}
	e.send()
	return e.err
}

// send writes what is in the buffer.
func (e *Encoder) send() {
	if len(e.buffer) == 0 {
		return
	}
	if _, err := e.out.Write(e.buffer); err != nil {
		e.err = fmt.Errorf("mp3: write: %w", err)
	}
}

// Close writes the last frames, fills in the tag where there is one, and releases the
// encoder. It does not close the underlying writer.
func (e *Encoder) Close() error {
	if e.closed {
		return e.err
	}
	e.closed = true
	defer e.lame.close()
	if e.err != nil {
		return e.err
	}
	if e.buffer, e.err = e.lame.flush(e.buffer[:0]); e.err != nil {
		return e.err
	}
	if e.send(); e.err == nil && e.seeker != nil {
		e.err = e.fillTag()
	}
	return e.err
}

func (e *Encoder) fillTag() error {
	tag, err := e.lame.tagFrame()
	if err != nil {
		return err
	}
	end, err := e.seeker.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = e.seeker.Seek(e.tagAt, io.SeekStart)
	}
	if err == nil {
		_, err = e.seeker.Write(tag)
	}
	if err == nil {
		_, err = e.seeker.Seek(end, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("mp3: fill in the tag: %w", err)
	}
	return nil
}
