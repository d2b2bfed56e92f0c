package main

import (
	"encoding/binary"
	"fmt"
	"math"

	"skald/host/checkpoint"
	"skald/host/engine"
)

// readReplay reads recorded codes [iterations, codebooks] and, where the file has
// them, the noise of each window. Lengths are checked against the model by the engine.
func readReplay(path string) (*engine.Replay, error) {
	f, err := checkpoint.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	codes, ok := f.Tensor("codes")
	if !ok {
		return nil, fmt.Errorf("%s holds no tensor codes [iterations, codebooks]", path)
	}
	replay := &engine.Replay{EndedByToken: f.Metadata()[endedByKey] == string(engine.EndEOS)}
	if replay.Codes, err = integerRows(codes); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Windows are numbered without gaps, so their count is bounded by the file.
	for window := 0; ; window++ {
		noise, ok := f.Tensor(fmt.Sprintf("window%d.noise", window))
		if !ok {
			return replay, nil
		}
		values, err := floatValues(noise)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		replay.Noise = append(replay.Noise, values)
	}
}

func integerRows(t checkpoint.Tensor) ([][]int32, error) {
	if len(t.Shape) != 2 || t.Shape[1] < 1 || t.DType != checkpoint.I32 && t.DType != checkpoint.I64 {
		return nil, fmt.Errorf("%s is %s %v, want I32 or I64 [iterations, codebooks]", t.Name, t.DType, t.Shape)
	}
	rows, width := t.Shape[0], t.Shape[1]
	flat := make([]int32, t.Elements())
	for i := range flat {
		if t.DType == checkpoint.I32 {
			flat[i] = int32(binary.LittleEndian.Uint32(t.Data[4*i:]))
			continue
		}
		wide := int64(binary.LittleEndian.Uint64(t.Data[8*i:]))
		if wide != int64(int32(wide)) {
			return nil, fmt.Errorf("%s holds %d, which is no code", t.Name, wide)
		}
		flat[i] = int32(wide)
	}
	out := make([][]int32, rows)
	for i := range out {
		out[i] = flat[i*width : (i+1)*width]
	}
	return out, nil
}

func floatValues(t checkpoint.Tensor) ([]float32, error) {
	out := make([]float32, t.Elements())
	for i := range out {
		switch t.DType {
		case checkpoint.F32:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		case checkpoint.BF16:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16)
		default:
			return nil, fmt.Errorf("%s is %s, want F32 or BF16", t.Name, t.DType)
		}
	}
	return out, nil
}
