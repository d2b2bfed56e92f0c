package server

import (
	"fmt"
	"io"

	"skald/host/audio"
	"skald/host/audio/resample"
	"skald/host/engine"
	"skald/server/request"
)

// encoder turns a song's samples, as they come, into the bytes of a format.
type encoder struct {
	out       io.Writer
	resampler *resample.Resampler // nil: the model's own rate
	pcm       pcmEncoder
}

// newEncoder makes the encoder of a reply. When out can seek, what is only known at the
// end of a song is filled in then.
func newEncoder(out io.Writer, speech request.Speech, info engine.Info) (*encoder, error) {
	channels := len(engine.Song{}.Samples)
	e := &encoder{out: out}
	if speech.SampleRate != info.SampleRate {
		var err error
		if e.resampler, err = resample.New(info.SampleRate, speech.SampleRate, channels); err != nil {
			return nil, err
		}
	}
	e.pcm = pcmEncoder{
		out: out, header: speech.Format == request.WAV,
		format: audio.Format{Encoding: audio.PCM16, SampleRate: speech.SampleRate, Channels: channels},
	}
	return e, e.pcm.begin()
}

// write takes the next samples of the song, left and right.
func (e *encoder) write(samples [2][]float32) error {
	if e.resampler == nil {
		return e.pcm.write(samples[:])
	}
	resampled, err := e.resampler.Process(samples[:]...)
	if err != nil {
		return err
	}
	return e.pcm.write(resampled)
}

// close writes what is left.
func (e *encoder) close() error {
	if e.resampler != nil {
		if err := e.pcm.write(e.resampler.Flush()); err != nil {
			return err
		}
	}
	return e.pcm.close()
}

// pcmEncoder writes 16-bit samples, with a WAV header before them if there is to be one.
type pcmEncoder struct {
	out    io.Writer
	header bool
	format audio.Format
	size   int64  // of the samples so far
	buffer []byte // of the last call, to be used again
}

func (e *pcmEncoder) begin() error {
	if !e.header {
		return nil
	}
	header, err := audio.WAVHeader(e.format, audio.UnknownSize)
	if err != nil {
		return err
	}
	_, err = e.out.Write(header)
	return err
}

func (e *pcmEncoder) write(samples [][]float32) (err error) {
	if e.buffer, err = audio.AppendSamples(e.buffer[:0], e.format.Encoding, samples...); err != nil {
		return err
	}
	e.size += int64(len(e.buffer))
	_, err = e.out.Write(e.buffer)
	return err
}

// close completes the header where it can.
func (e *pcmEncoder) close() error {
	file, ok := e.out.(io.WriteSeeker)
	if !e.header || !ok {
		return nil
	}
	header, err := audio.WAVHeader(e.format, e.size)
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = file.Write(header)
	return err
}

// memory is a file in memory.
type memory struct {
	data []byte
	at   int
}

func (m *memory) Write(p []byte) (int, error) {
	n := copy(m.data[m.at:], p)
	m.data = append(m.data, p[n:]...)
	m.at += len(p)
	return len(p), nil
}

// Seek moves to a place within what was written.
func (m *memory) Seek(offset int64, whence int) (int64, error) {
	base := map[int]int{io.SeekStart: 0, io.SeekCurrent: m.at, io.SeekEnd: len(m.data)}
	at := int64(base[whence]) + offset
	if at < 0 || at > int64(len(m.data)) {
		return 0, fmt.Errorf("seek to byte %d of %d", at, len(m.data))
	}
	m.at = int(at)
	return at, nil
}
