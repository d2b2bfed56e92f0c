package checkpoint

import (
	"fmt"
	"maps"
)

// Tensor is one named array of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int // row-major; a scalar has no dimensions

	// Data holds the numbers, little-endian, at any alignment. It points into
	// the file's mapping: read-only, and valid until the file is closed.
	Data []byte

	File   string // the file it came from
	Offset int64  // of Data in that file, in bytes
}

// Elements returns the count of numbers, the product of the shape.
func (t Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is an open safetensors file.
type File struct {
	name     string
	size     int64
	tensors  []Tensor // by offset
	index    map[string]int
	metadata map[string]string
	close    func() error
}

// OpenFile maps the safetensors file at path and reads its header.
func OpenFile(path string) (*File, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return f, nil
}

func openFile(path string) (*File, error) {
	data, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parseFile(path, data)
	if err != nil {
		unmap()
		return nil, err
	}
	f.close = unmap
	return f, nil
}

// ParseFile reads the safetensors file held in data, which must not change
// afterwards: the tensors point into it. The name is used in errors.
//
// The format: eight bytes with the header's length, little-endian; the header,
// one JSON object that gives each tensor's dtype, shape and place; the numbers,
// without holes. Anything else is an error that names the file and the byte.
func ParseFile(name string, data []byte) (*File, error) {
	f, err := parseFile(name, data)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return f, nil
}

func parseFile(name string, data []byte) (*File, error) {
	header, err := readHeader(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &File{
		name:     name,
		size:     int64(len(data)),
		tensors:  header.tensors,
		index:    make(map[string]int, len(header.tensors)),
		metadata: header.metadata,
	}
	for i := range f.tensors {
		f.tensors[i].File = name
		f.index[f.tensors[i].Name] = i
	}
	return f, nil
}

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Names lists the tensors in the order in which they lie in the file.
func (f *File) Names() []string {
	names := make([]string, len(f.tensors))
	for i, t := range f.tensors {
		names[i] = t.Name
	}
	return names
}

// Metadata returns a copy of the free text pairs of the header.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Close releases the mapping. No tensor of the file may be used afterwards.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	release := f.close
	f.close, f.tensors, f.index = nil, nil, nil
	if err := release(); err != nil {
		return fmt.Errorf("checkpoint: %s: %w", f.name, err)
	}
	return nil
}
