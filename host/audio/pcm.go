package audio

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendSamples appends the channels, equally long, to dst: interleaved and
// little-endian. Samples beyond -1 and 1 are clamped. An integer is x * 32767, or x *
// 8388607, as a float32 product, rounded to nearest, ties to even: what libsndfile
// stores unless it is told to clip. Channels of different lengths and samples that
// are not finite are errors, and then nothing is appended.
func AppendSamples(dst []byte, e Encoding, channels ...[]float32) ([]byte, error) {
	if e.Bytes() == 0 {
		return dst, fmt.Errorf("audio: unknown encoding %v: use PCM16, PCM24 or Float32", e)
	}
	if err := checkSamples(channels); err != nil {
		return dst, err
	}
	if len(channels) == 0 {
		return dst, nil
	}
	for i := range channels[0] {
		for _, c := range channels {
			v := encode(e, c[i])
			switch e {
			case PCM16:
				dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
			case PCM24:
				dst = append(dst, byte(v), byte(v>>8), byte(v>>16))
			case Float32:
				dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
			}
		}
	}
	return dst, nil
}

// encode is the bit pattern of a finite sample, in the low bits of the result.
func encode(e Encoding, x float32) int32 {
	x = min(max(x, -1), 1)
	switch e {
	case PCM16:
		return roundEven(float32(x * (1<<15 - 1)))
	case PCM24:
		return roundEven(float32(x * (1<<23 - 1)))
	default:
		return int32(math.Float32bits(x))
	}
}

func roundEven(x float32) int32 { return int32(math.RoundToEven(float64(x))) }

// checkSamples reports channels that differ in length and the first sample, in time,
// that is not finite.
func checkSamples(channels [][]float32) error {
	for i, c := range channels {
		if len(c) != len(channels[0]) {
			return fmt.Errorf("audio: channel %d has %d samples, channel 0 has %d: expected as many", i, len(c), len(channels[0]))
		}
	}
	if len(channels) == 0 {
		return nil
	}
	for i := range channels[0] {
		for ch, c := range channels {
			if !finite(c[i]) {
				return fmt.Errorf("audio: sample %d of channel %d is %v: expected a finite number", i, ch, c[i])
			}
		}
	}
	return nil
}

func finite(x float32) bool { return x-x == 0 }
