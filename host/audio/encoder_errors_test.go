package audio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// brief keeps the first bytes and then has no room.
type brief struct{ left int }

var errFull = errors.New("no space")

func (b *brief) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestEncoderErrors(t *testing.T) {
	good := EncoderConfig{Container: FLAC, Channels: 2, InputRate: 44100}
	for _, c := range []struct {
		change func(*EncoderConfig)
		want   string
	}{
		{func(c *EncoderConfig) { c.Container = 0 }, "unknown container Container(0)"},
		{func(c *EncoderConfig) { c.Container = 6 }, "unknown container Container(6)"},
		{func(c *EncoderConfig) { c.Channels = 3 }, "3 channels: expected 1 or 2"},
		{func(c *EncoderConfig) { c.Encoding = Float32 }, "flac has no 32-bit float"},
		{func(c *EncoderConfig) { c.Container, c.Encoding = MP3, PCM16 }, "mp3 has no encoding"},
		{func(c *EncoderConfig) { c.Container, c.Encoding = WAV, 9 }, "unknown encoding"},
		{func(c *EncoderConfig) { c.Container, c.Encoding = PCM, 9 }, "unknown encoding"},
		{func(c *EncoderConfig) { c.Container, c.SampleRate = MP3, 96000 }, "expected one of [8000"},
		{func(c *EncoderConfig) { c.Container, c.SampleRate = Opus, 44100 }, "opus is always 48000"},
		{func(c *EncoderConfig) { c.SampleRate = 7999 }, "7999 Hz: expected 8000 to 192000"},
		{func(c *EncoderConfig) { c.InputRate = 0 }, "0 Hz"},
		{func(c *EncoderConfig) { c.InputRate, c.SampleRate = 1, 44100 }, "1 Hz"},
		{func(c *EncoderConfig) { c.Frames = -1 }, "-1 frames"},
		{func(c *EncoderConfig) { c.Frames = 1 << 40 }, "2^36"},
		{func(c *EncoderConfig) { c.Container, c.Frames = WAV, 1<<30 }, "too many for a WAV file"},
		{func(c *EncoderConfig) { c.Container, c.Frames = WAV, 1<<62 }, "2^36"},
	} {
		config := good
		c.change(&config)
		var b bytes.Buffer
		if _, err := NewEncoder(&b, config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
		if b.Len() > 0 {
			t.Errorf("%q: %d bytes were written", c.want, b.Len())
		}
	}
	nan := float32(math.NaN())
	for _, c := range configs() {
		e, err := NewEncoder(io.Discard, c)
		if err != nil {
			t.Fatal(err)
		}
		block := slices.Repeat([][]float32{{0, 1}}, c.Channels)
		if err := e.Write(block...); err != nil {
			t.Error(err)
		}
		block[c.Channels-1] = []float32{0, nan}
		if err := e.Write(block...); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("begins with sample 2: audio: sample 1 of channel %d is NaN", c.Channels-1)) {
			t.Errorf("NaN: error %v", err)
		}
		if err := e.Write(); err == nil {
			t.Error("a write without channels succeeded")
		}
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		if err := e.Write(block...); err == nil || !strings.Contains(err.Error(), "after Close") {
			t.Errorf("a write after Close: error %v", err)
		}

		announced := c
		announced.Frames = 5
		if e, err = NewEncoder(io.Discard, announced); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err == nil || !strings.Contains(err.Error(), "0 samples of each channel were written: 5 were announced") {
			t.Errorf("%v: too few samples: error %v", c, err)
		}
	}
	full := 0
	for _, c := range configs() {
		x := song(t, c.Channels)
		for _, room := range []int{0, 30, 1000} {
			e, err := NewEncoder(&brief{room}, c)
			if err == nil {
				err = e.Write(x...)
				if closed := e.Close(); err != nil && !errors.Is(closed, errFull) {
					t.Errorf("%v with room for %d bytes: Close: %v", c, room, closed)
				} else if err == nil {
					err = closed
				}
			}
			if !errors.Is(err, errFull) {
				t.Errorf("%v with room for %d bytes: error %v", c, room, err)
			}
			full++
		}
	}
	t.Logf("%d full disks", full)
}

func TestContainer(t *testing.T) {
	for _, c := range Containers() {
		if got, err := ParseContainer(c.String()); err != nil || got != c {
			t.Errorf("ParseContainer(%q) = %v, %v", c.String(), got, err)
		}
		for _, rate := range []int{0, 7999, 8000, 44100, 48000, 96000, 192000, 192001} {
			_, err := NewEncoder(io.Discard, EncoderConfig{Container: c, Channels: 2, InputRate: 44100, SampleRate: max(rate, 1)})
			if refused := c.CheckSampleRate(max(rate, 1)) != nil; refused != (err != nil) {
				t.Errorf("%v at %d Hz: CheckSampleRate refuses: %v, NewEncoder: %v", c, rate, refused, err)
			}
		}
	}
	if _, err := ParseContainer("ogg"); err == nil || !strings.Contains(err.Error(), "expected one of wav, flac, mp3, opus, pcm") {
		t.Errorf("error %v", err)
	}
	if got := Opus.MediaType() + " " + MP3.MediaType() + " " + WAV.MediaType(); got != "audio/ogg; codecs=opus audio/mpeg audio/wav" {
		t.Errorf("media types %s", got)
	}
}

func TestBuffer(t *testing.T) {
	var b Buffer
	for _, s := range []string{"hello ", "world"} {
		if n, err := b.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, c := range []struct {
		offset int64
		whence int
		want   int64
	}{{0, io.SeekCurrent, 11}, {3, io.SeekStart, 3}, {2, io.SeekCurrent, 5}, {-2, io.SeekEnd, 9}, {9, io.SeekStart, 9}} {
		if got, err := b.Seek(c.offset, c.whence); got != c.want || err != nil {
			t.Errorf("Seek(%d, %d) = %d, %v; want %d", c.offset, c.whence, got, err, c.want)
		}
	}
	for _, offset := range []int64{-1, 12, math.MaxInt64} {
		if _, err := b.Seek(offset, io.SeekStart); err == nil {
			t.Errorf("Seek(%d) succeeded", offset)
		}
	}
	_, _ = b.Write([]byte("LDen")) // over the end
	if string(b.Bytes()) != "hello worLDen" {
		t.Errorf("%q", b.Bytes())
	}
}
