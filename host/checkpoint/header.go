package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	lengthBytes = 8 // of the header's length, before the header

	// maxHeaderBytes is the format's own bound.
	maxHeaderBytes = 100_000_000

	maxDims = 64 // of a tensor, as in numpy

	metadataKey = "__metadata__"
)

// header is what stands before the numbers of a safetensors file.
type header struct {
	tensors  []Tensor // by offset
	metadata map[string]string
}

// readHeader reads and checks the header of a whole file.
func readHeader(data []byte) (header, error) {
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return header{}, errors.New("this is a Git LFS pointer, not the weights: run `git lfs pull`")
	}
	if len(data) < lengthBytes {
		return header{}, fmt.Errorf("byte 0: the file has %d bytes, too few for a safetensors header length of %d",
			len(data), lengthBytes)
	}
	claimed := binary.LittleEndian.Uint64(data)
	if claimed > maxHeaderBytes {
		return header{}, fmt.Errorf("byte 0: header length %d, expected at most %d: not a safetensors file",
			claimed, maxHeaderBytes)
	}
	if claimed > uint64(len(data)-lengthBytes) {
		return header{}, fmt.Errorf("byte 0: header length %d, but only %d bytes follow: the file is truncated",
			claimed, len(data)-lengthBytes)
	}
	text := data[lengthBytes : lengthBytes+int(claimed)]
	p := headerParser{dec: jsontext.NewDecoder(bytes.NewReader(text))}
	if err := p.parse(text); err != nil {
		return header{}, p.locate(err)
	}
	body := data[lengthBytes+len(text):]
	tensors, err := place(p.entries, body, int64(lengthBytes+len(text)))
	if err != nil {
		return header{}, err
	}
	return header{tensors: tensors, metadata: p.metadata}, nil
}

// entry is one tensor as the header describes it.
type entry struct {
	name       string
	dtype      DType
	shape      []int
	begin, end uint64 // in the bytes after the header
	at         int64  // where the header describes it, as an offset in the file
}

// headerParser reads the header token by token, so that nothing is built for
// what has no place in it.
type headerParser struct {
	dec      *jsontext.Decoder
	entries  []entry
	metadata map[string]string
}

// parse reads the whole header. Duplicate names and text that is not UTF-8 are
// errors of the decoder.
func (p *headerParser) parse(text []byte) error {
	if len(text) == 0 || text[0] != '{' {
		return errors.New("the header is not a JSON object")
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for p.dec.PeekKind() != '}' {
		name, err := p.text()
		if err != nil {
			return err
		}
		if name == metadataKey {
			err = p.readMetadata()
		} else {
			err = p.readEntry(name)
		}
		if err != nil {
			return err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	if _, err := p.dec.ReadToken(); err != io.EOF {
		if err == nil {
			err = errors.New("something follows the header's object")
		}
		return err
	}
	return nil
}

// locate adds the byte of the file at which the parser stopped.
func (p *headerParser) locate(err error) error {
	at := p.dec.InputOffset()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		at = syntax.ByteOffset
		if syntax.JSONPointer != "" {
			err = fmt.Errorf("at %q: %w", clip(string(syntax.JSONPointer)), syntax.Err)
		} else {
			err = syntax.Err
		}
	}
	return fmt.Errorf("byte %d: header: %w", lengthBytes+at, err)
}

func (p *headerParser) readMetadata() error {
	if err := p.delimiter('{', metadataKey+" is not an object"); err != nil {
		return err
	}
	p.metadata = map[string]string{}
	for p.dec.PeekKind() != '}' {
		key, err := p.text()
		if err != nil {
			return err
		}
		value, err := p.text()
		if err != nil {
			return err
		}
		p.metadata[key] = value
	}
	_, err := p.dec.ReadToken()
	return err
}

func (p *headerParser) readEntry(name string) error {
	e := entry{name: name, at: lengthBytes + p.dec.InputOffset()}
	if err := p.delimiter('{', fmt.Sprintf("tensor %q is not an object", clip(name))); err != nil {
		return err
	}
	var dtype, shape, offsets bool
	for p.dec.PeekKind() != '}' {
		key, err := p.text()
		if err != nil {
			return err
		}
		switch key {
		case "dtype":
			dtype = true
			err = p.readDType(&e)
		case "shape":
			shape = true
			err = p.readShape(&e)
		case "data_offsets":
			offsets = true
			err = p.readOffsets(&e)
		default:
			err = fmt.Errorf("tensor %q: unknown member %q, expected dtype, shape and data_offsets", clip(name), clip(key))
		}
		if err != nil {
			return err
		}
	}
	if !dtype || !shape || !offsets {
		return fmt.Errorf("tensor %q lacks one of dtype, shape and data_offsets", clip(name))
	}
	p.entries = append(p.entries, e)
	_, err := p.dec.ReadToken()
	return err
}

func (p *headerParser) readDType(e *entry) error {
	text, err := p.text()
	if err != nil {
		return err
	}
	e.dtype = DType(text)
	if e.dtype.Size() == 0 {
		return fmt.Errorf("tensor %q: dtype %q is not supported", clip(e.name), clip(text))
	}
	return nil
}

func (p *headerParser) readShape(e *entry) error {
	if err := p.delimiter('[', fmt.Sprintf("tensor %q: shape is not an array", clip(e.name))); err != nil {
		return err
	}
	for p.dec.PeekKind() != ']' {
		d, err := p.natural()
		if err != nil {
			return fmt.Errorf("tensor %q: shape: %w", clip(e.name), err)
		}
		if d > math.MaxInt {
			return fmt.Errorf("tensor %q: dimension %d is too large", clip(e.name), d)
		}
		if len(e.shape) == maxDims {
			return fmt.Errorf("tensor %q: more than %d dimensions", clip(e.name), maxDims)
		}
		e.shape = append(e.shape, int(d))
	}
	_, err := p.dec.ReadToken()
	return err
}

func (p *headerParser) readOffsets(e *entry) error {
	wrong := fmt.Sprintf("tensor %q: data_offsets is not an array of two numbers", clip(e.name))
	if err := p.delimiter('[', wrong); err != nil {
		return err
	}
	for _, to := range []*uint64{&e.begin, &e.end} {
		n, err := p.natural()
		if err != nil {
			return fmt.Errorf("tensor %q: data_offsets: %w", clip(e.name), err)
		}
		*to = n
	}
	return p.delimiter(']', wrong)
}

// delimiter reads one bracket, or fails with what is wrong.
func (p *headerParser) delimiter(kind jsontext.Kind, wrong string) error {
	if found := p.dec.PeekKind(); found != kind && found != 0 {
		return errors.New(wrong)
	}
	_, err := p.dec.ReadToken()
	return err
}

// text reads one string.
func (p *headerParser) text() (string, error) {
	token, err := p.dec.ReadToken()
	if err != nil {
		return "", err
	}
	if token.Kind() != '"' {
		return "", fmt.Errorf("%s, expected a string", clip(token.String()))
	}
	return token.String(), nil
}

// natural reads one number in plain decimal digits.
func (p *headerParser) natural() (uint64, error) {
	token, err := p.dec.ReadToken()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(token.String(), 10, 64)
	if token.Kind() != '0' || err != nil {
		return 0, fmt.Errorf("%s, expected a non-negative integer", clip(token.String()))
	}
	return n, nil
}

// place checks that the entries cover body exactly, one after another, and makes
// tensors of them. start is body's offset in the file.
func place(entries []entry, body []byte, start int64) ([]Tensor, error) {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	tensors := make([]Tensor, 0, len(entries))
	var at uint64
	for _, e := range entries {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("byte %d: tensor %q: %s", e.at, clip(e.name), fmt.Sprintf(format, args...))
		}
		switch {
		case e.end < e.begin:
			return nil, fail("data_offsets [%d,%d] run backwards", e.begin, e.end)
		case e.end > uint64(len(body)):
			return nil, fail("data_offsets [%d,%d] end behind the file, which has %d bytes of data: it is truncated",
				e.begin, e.end, len(body))
		case e.begin < at:
			return nil, fail("data_offsets [%d,%d] overlap the tensor before, which ends at %d", e.begin, e.end, at)
		case e.begin > at:
			return nil, fail("data_offsets [%d,%d] leave a hole after %d", e.begin, e.end, at)
		}
		size, ok := byteSize(e.dtype, e.shape)
		if !ok || size != e.end-e.begin {
			return nil, fail("%s %v does not fill its %d bytes", e.dtype, e.shape, e.end-e.begin)
		}
		tensors = append(tensors, Tensor{
			Name:   e.name,
			DType:  e.dtype,
			Shape:  e.shape,
			Data:   body[e.begin:e.end:e.end],
			Offset: start + int64(e.begin),
		})
		at = e.end
	}
	if at != uint64(len(body)) {
		return nil, fmt.Errorf("byte %d: %d bytes follow the last tensor", start+int64(at), uint64(len(body))-at)
	}
	return tensors, nil
}

// byteSize returns the bytes of a tensor, and false when they overflow.
func byteSize(dtype DType, shape []int) (uint64, bool) {
	size := uint64(dtype.Size())
	overflow := false
	for _, d := range shape {
		if d == 0 {
			return 0, true
		}
		hi, lo := bits.Mul64(size, uint64(d))
		overflow = overflow || hi != 0 || lo > math.MaxInt
		size = lo
	}
	return size, !overflow
}
