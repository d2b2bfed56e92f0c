package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"skald/host/checkpoint"
	"skald/host/engine"
)

// tracing gathers the tensors of --trace. A safetensors file begins with a list of all
// its tensors, which is known only at the end, so the numbers go to a temporary file
// first. A nil *tracing does nothing.
type tracing struct {
	out     *atomicFile
	numbers *os.File
	tensors []checkpoint.Tensor
}

// openTrace begins the file of --trace; nil without one.
func openTrace(path string) (*tracing, error) {
	if path == "" {
		return nil, nil
	}
	out, err := createAtomic(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	numbers, err := os.CreateTemp("", "skald-trace-*")
	if err != nil {
		out.discard()
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return &tracing{out: out, numbers: numbers}, nil
}

// add keeps one tensor.
func (t *tracing) add(x engine.TraceTensor) error {
	dtype, data := checkpoint.F32, []byte(nil)
	switch {
	case x.I32 != nil:
		dtype = checkpoint.I32
		for _, v := range x.I32 {
			data = binary.LittleEndian.AppendUint32(data, uint32(v))
		}
	case x.BF16 != nil:
		dtype = checkpoint.BF16
		for _, v := range x.BF16 {
			data = binary.LittleEndian.AppendUint16(data, v)
		}
	default:
		for _, v := range x.F32 {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	t.tensors = append(t.tensors, checkpoint.Tensor{Name: x.Name, DType: dtype, Shape: append([]int{}, x.Shape...)})
	_, err := t.numbers.Write(data)
	return err
}

// endedByKey is the entry of a trace's metadata that says why the song ended.
const endedByKey = "ended_by"

// commit writes the file.
func (t *tracing) commit(song *engine.Song) error {
	if t == nil {
		return nil
	}
	if _, err := t.numbers.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(t.out, 1<<20)
	w, err := checkpoint.NewWriter(buffered, t.tensors, map[string]string{
		endedByKey: string(song.EndReason),
		"seed":     strconv.FormatUint(song.Seed, 10),
	})
	if err != nil {
		return err
	}
	for _, x := range t.tensors {
		if err := w.Next(x.Name); err != nil {
			return err
		}
		n := int64(x.Elements() * x.DType.Size())
		if _, err := io.CopyN(w, t.numbers, n); err != nil {
			return fmt.Errorf("tensor %s: %w", x.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return t.out.commit()
}

// discard removes the temporary file, and the trace itself unless it was committed.
func (t *tracing) discard() {
	if t == nil {
		return
	}
	t.out.discard()
	t.numbers.Close()
	os.Remove(t.numbers.Name())
}
