// Package synth writes random checkpoints of the MiniMax-Music3 architecture, to test
// and to measure without the weights. Their songs are noise of a sensible level.
//
// A checkpoint is a function of its shape, seed and types: the same on every machine,
// and each tensor the same whatever lies beside it.
package synth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"skald/host/checkpoint"
)

// DTypes says in which types the weights are stored.
type DTypes string

// The choices: as the published checkpoint has them (language model and depth decoder
// in BF16, the rest in F32), or all in one type.
const (
	Published DTypes = "published"
	BF16      DTypes = "bf16"
	F32       DTypes = "f32"
)

func (d DTypes) of(component string) checkpoint.DType {
	switch {
	case d == BF16, d == Published && (component == "language_model" || component == "rvq_depth_decoder"):
		return checkpoint.BF16
	}
	return checkpoint.F32
}

// Options say what to write.
type Options struct {
	Shape  Shape
	Seed   uint64
	DTypes DTypes
	// Progress, when set, is called after every few megabytes.
	Progress func(Progress)
}

// Progress tells how far Write is.
type Progress struct {
	File           string // being written, relative to the checkpoint
	Written, Total int64  // bytes of weights
}

// file is one file of weights.
type file struct {
	name  string
	specs []checkpoint.Spec
}

// Bytes returns the bytes of all weights.
func (o Options) Bytes() int64 {
	var sum int64
	for _, spec := range checkpoint.Inventory(o.Shape.Config) {
		sum += o.bytes(spec)
	}
	return sum
}

func (o Options) bytes(spec checkpoint.Spec) int64 {
	n := int64(o.DTypes.of(spec.Component).Size())
	for _, d := range spec.Shape {
		n *= int64(d)
	}
	return n
}

// Write makes the checkpoint folder dir, which must not exist or be empty. It appears
// under its name only when complete; when ctx ends, or something fails, nothing is
// left behind.
func Write(ctx context.Context, dir string, o Options) (err error) {
	switch o.DTypes {
	case Published, BF16, F32:
	default:
		return fmt.Errorf("types %q, want %s, %s or %s", o.DTypes, Published, BF16, F32)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := checkTarget(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".partial-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if err := os.Chmod(partial, 0o755); err != nil { // MkdirTemp makes it private
		return err
	}
	if err := writeSettings(partial, o.Shape); err != nil {
		return err
	}
	w := &writer{ctx: ctx, dir: partial, options: o, total: o.Bytes()}
	for _, component := range checkpoint.Components() {
		if err := w.component(component); err != nil {
			return err
		}
	}
	return os.Rename(partial, dir)
}

// checkTarget refuses a folder that holds anything.
func checkTarget(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty (it holds %s): name a new folder", dir, entries[0].Name())
	}
	return nil
}

func writeSettings(dir string, s Shape) error {
	files, err := s.Config.Files()
	if err != nil {
		return err
	}
	tokenizer, config, err := tokenizerFiles(s)
	if err != nil {
		return err
	}
	manifest := map[string]any{
		"name":   "synth-" + s.Name,
		"title":  "Random weights, " + s.About,
		"notice": "The weights are random numbers: every song is noise.",
	}
	for name, value := range map[string]any{
		"tokenizer/tokenizer.json":        tokenizer,
		"tokenizer/tokenizer_config.json": config,
		"skald.json":                      manifest,
	} {
		data, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		files[name] = append(data, '\n')
	}
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writer writes the weights, one file after another.
type writer struct {
	ctx            context.Context
	dir            string
	options        Options
	written, total int64
	block          []byte
}

// component writes the files of one folder: one, or shards and their index.
func (w *writer) component(component string) error {
	specs := slices.DeleteFunc(checkpoint.Inventory(w.options.Shape.Config),
		func(s checkpoint.Spec) bool { return s.Component != component })
	files := w.split(component, specs)
	for _, f := range files {
		if err := w.file(component, f); err != nil {
			return fmt.Errorf("%s/%s: %w", component, f.name, err)
		}
	}
	if len(files) == 1 {
		return nil
	}
	index := struct {
		Metadata  map[string]int64  `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}{map[string]int64{"total_size": 0}, map[string]string{}}
	for _, f := range files {
		for _, spec := range f.specs {
			index.Metadata["total_size"] += w.options.bytes(spec)
			index.WeightMap[spec.Name] = f.name
		}
	}
	data, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	name := stem(component) + ".safetensors.index.json"
	return os.WriteFile(filepath.Join(w.dir, component, name), append(data, '\n'), 0o644)
}

// split distributes the tensors over shards, in their order, as the published
// checkpoint does for its two large components.
func (w *writer) split(component string, specs []checkpoint.Spec) []file {
	most := w.options.Shape.shard
	if component != "language_model" && component != "transformer" {
		most = w.total
	}
	files := []file{{}}
	var inFile int64
	for _, spec := range specs {
		n := w.options.bytes(spec)
		if inFile > 0 && inFile+n > most {
			files = append(files, file{})
			inFile = 0
		}
		last := &files[len(files)-1]
		last.specs = append(last.specs, spec)
		inFile += n
	}
	for i := range files {
		files[i].name = stem(component) + ".safetensors"
		if len(files) > 1 {
			files[i].name = fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem(component), i+1, len(files))
		}
	}
	return files
}

// stem is the name of a component's weights in the diffusers layout.
func stem(component string) string {
	if component == "language_model" {
		return "model"
	}
	return "diffusion_pytorch_model"
}

func (w *writer) file(component string, f file) (err error) {
	out, err := os.OpenFile(filepath.Join(w.dir, component, f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()
	tensors := make([]checkpoint.Tensor, len(f.specs))
	dtype := w.options.DTypes.of(component)
	for i, spec := range f.specs {
		tensors[i] = checkpoint.Tensor{Name: spec.Name, DType: dtype, Shape: spec.Shape}
	}
	weights, err := checkpoint.NewWriter(out, tensors, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	for _, spec := range f.specs {
		rule, err := ruleFor(spec, w.options.Shape.Config)
		if err != nil {
			return err
		}
		if err := weights.Next(spec.Name); err != nil {
			return err
		}
		filler := newFiller(w.options.Seed, spec, rule, dtype)
		if err := w.tensor(weights, filler, component+"/"+f.name, w.options.bytes(spec)); err != nil {
			return err
		}
	}
	return weights.Close()
}

// tensor streams the bytes of one tensor.
func (w *writer) tensor(out *checkpoint.Writer, f filler, name string, bytes int64) error {
	const blockBytes = 8 << 20
	if w.block == nil {
		w.block = make([]byte, blockBytes)
	}
	size := int64(f.dtype.Size())
	for at := int64(0); at < bytes; {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		part := w.block[:min(blockBytes, bytes-at)]
		f.fill(part, int(at/size))
		if _, err := out.Write(part); err != nil {
			return err
		}
		at += int64(len(part))
		w.written += int64(len(part))
		if w.options.Progress != nil {
			w.options.Progress(Progress{File: name, Written: w.written, Total: w.total})
		}
	}
	return nil
}
