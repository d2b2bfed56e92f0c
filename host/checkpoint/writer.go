package checkpoint

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer writes a safetensors file as a stream. All tensors are declared first;
// then, for each of them in the declared order, Next and as many Writes as its
// bytes need. Nothing is held in memory.
type Writer struct {
	w       io.Writer
	tensors []Tensor
	at      int   // index of the current tensor, -1 before the first
	left    int64 // bytes the current tensor still needs
}

// NewWriter writes the header. Name, DType and Shape of each tensor count, its
// Data does not. The numbers begin at a multiple of eight; those of a tensor begin
// where the one before ends, so a caller who wants them aligned declares the types
// with the larger numbers first.
func NewWriter(w io.Writer, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	text, err := encodeHeader(tensors, metadata)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("checkpoint: writing the header: %w", err)
	}
	return &Writer{w: w, tensors: tensors, at: -1}, nil
}

// Next begins the tensor of that name, which must be the next declared one. The
// tensor before must be complete.
func (w *Writer) Next(name string) error {
	if err := w.complete(); err != nil {
		return err
	}
	if w.at+1 >= len(w.tensors) {
		return fmt.Errorf("checkpoint: tensor %q was not declared: all %d tensors are written", name, len(w.tensors))
	}
	if next := w.tensors[w.at+1]; next.Name != name {
		return fmt.Errorf("checkpoint: tensor %q, expected %q, the next declared", name, next.Name)
	}
	w.at++
	size, _ := byteSize(w.tensors[w.at].DType, w.tensors[w.at].Shape)
	w.left = int64(size)
	return nil
}

// Write writes bytes of the current tensor. More than it has room for are refused
// and not written.
func (w *Writer) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		if w.at < 0 {
			return 0, errors.New("checkpoint: Write before Next")
		}
		return 0, fmt.Errorf("checkpoint: tensor %q: %d bytes too many", w.tensors[w.at].Name, int64(len(p))-w.left)
	}
	n, err := w.w.Write(p)
	w.left -= int64(n)
	return n, err
}

// Close reports whether every declared tensor is complete. It does not close the
// writer below.
func (w *Writer) Close() error {
	if err := w.complete(); err != nil {
		return err
	}
	if w.at+1 < len(w.tensors) {
		return fmt.Errorf("checkpoint: %d tensors are not written, first %q",
			len(w.tensors)-w.at-1, w.tensors[w.at+1].Name)
	}
	return nil
}

func (w *Writer) complete() error {
	if w.left > 0 {
		return fmt.Errorf("checkpoint: tensor %q lacks %d bytes", w.tensors[w.at].Name, w.left)
	}
	return nil
}

// encodeHeader returns the header with its length before it, padded with spaces.
func encodeHeader(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	const alignment = 8
	text := make([]byte, lengthBytes, 64*(len(tensors)+1))
	text = append(text, '{')
	quote := func(s string) (err error) {
		text, err = jsontext.AppendQuote(text, s)
		return err
	}
	if len(metadata) > 0 {
		text = append(text, `"`+metadataKey+`":{`...)
		for i, key := range sortedKeys(metadata) {
			if i > 0 {
				text = append(text, ',')
			}
			if err := quote(key); err != nil {
				return nil, fmt.Errorf("metadata key %q: %w", clip(key), err)
			}
			text = append(text, ':')
			if err := quote(metadata[key]); err != nil {
				return nil, fmt.Errorf("metadata of %q: %w", clip(key), err)
			}
		}
		text = append(text, '}')
	}
	names := make(map[string]bool, len(tensors))
	var at uint64
	for i, t := range tensors {
		size, err := t.check()
		switch {
		case err != nil:
			return nil, err
		case names[t.Name]:
			return nil, fmt.Errorf("tensor %q is declared twice", clip(t.Name))
		case at+size > math.MaxInt64:
			return nil, fmt.Errorf("tensor %q: the file would be too large", clip(t.Name))
		}
		names[t.Name] = true
		if i > 0 || len(metadata) > 0 {
			text = append(text, ',')
		}
		if err := quote(t.Name); err != nil {
			return nil, fmt.Errorf("tensor name %q: %w", clip(t.Name), err)
		}
		text = append(text, `:{"dtype":"`+string(t.DType)+`","shape":[`...)
		for j, d := range t.Shape {
			if j > 0 {
				text = append(text, ',')
			}
			text = strconv.AppendInt(text, int64(d), 10)
		}
		text = fmt.Appendf(text, `],"data_offsets":[%d,%d]}`, at, at+size)
		at += size
	}
	text = append(text, '}')
	for len(text)%alignment != 0 {
		text = append(text, ' ')
	}
	if len(text)-lengthBytes > maxHeaderBytes {
		return nil, fmt.Errorf("a header of %d bytes, the format allows %d", len(text)-lengthBytes, maxHeaderBytes)
	}
	binary.LittleEndian.PutUint64(text, uint64(len(text)-lengthBytes))
	return text, nil
}

// check reports whether a tensor can be declared, and its bytes.
func (t Tensor) check() (size uint64, err error) {
	if t.Name == metadataKey {
		return 0, fmt.Errorf("tensor %q: the name is reserved", t.Name)
	}
	if t.DType.Size() == 0 {
		return 0, fmt.Errorf("tensor %q: dtype %q is not supported", clip(t.Name), t.DType)
	}
	if len(t.Shape) > maxDims {
		return 0, fmt.Errorf("tensor %q has %d dimensions, expected at most %d", clip(t.Name), len(t.Shape), maxDims)
	}
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %q: shape %v is negative", clip(t.Name), t.Shape)
		}
	}
	size, ok := byteSize(t.DType, t.Shape)
	if !ok {
		return 0, fmt.Errorf("tensor %q: shape %v is too large", clip(t.Name), t.Shape)
	}
	return size, nil
}

// WriteFile writes tensors with their Data to a safetensors file. A file of that
// name is replaced only when the new one is complete.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) (err error) {
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	buffered := bufio.NewWriter(f)
	if err := writeAll(buffered, tensors, metadata); err != nil {
		return err
	}
	for _, step := range []func() error{
		buffered.Flush,
		f.Sync,
		f.Close,
		func() error { return os.Rename(f.Name(), path) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("checkpoint: writing %s: %w", path, err)
		}
	}
	return nil
}

func writeAll(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	out, err := NewWriter(w, tensors, metadata)
	if err != nil {
		return err
	}
	for _, t := range tensors {
		if err := out.Next(t.Name); err != nil {
			return err
		}
		if _, err := out.Write(t.Data); err != nil {
			return err
		}
	}
	return out.Close()
}
