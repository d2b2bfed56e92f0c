package synth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"skald/host/checkpoint"
)

// TestPublishedSizes compares the full shape with the parameter and tensor counts of
// the published checkpoint's components.
func TestPublishedSizes(t *testing.T) {
	want := map[string]struct {
		billions float64
		tensors  int
	}{
		"language_model":    {8.584, 399},
		"rvq_depth_decoder": {0.646, 47},
		"condition_encoder": {0.025, 4},
		"transformer":       {2.432, 441},
		"vocoder":           {0.054, 121},
	}
	numbers, tensors := map[string]int64{}, map[string]int{}
	for _, spec := range checkpoint.Inventory(full().Config) {
		n := int64(1)
		for _, d := range spec.Shape {
			n *= int64(d)
		}
		numbers[spec.Component] += n
		tensors[spec.Component]++
	}
	for component, w := range want {
		if got := float64(numbers[component]) / 1e9; math.Abs(got-w.billions) > 0.0005 {
			t.Errorf("%s has %.4f billion parameters, want %.3f", component, got, w.billions)
		}
		if tensors[component] != w.tensors {
			t.Errorf("%s has %d tensors, want %d", component, tensors[component], w.tensors)
		}
	}
	if got := (Options{Shape: full(), DTypes: Published}).Bytes(); got < 28.4e9 || got > 28.6e9 {
		t.Errorf("%d bytes, want about 28.5e9", got)
	}
	t.Logf("examined %d components", len(want))
}

// TestWrite writes the small shapes in every type and reads them back.
func TestWrite(t *testing.T) {
	n := 0
	for _, shape := range []Shape{tiny(), aligned()} {
		for _, dtypes := range []DTypes{Published, BF16, F32} {
			dir := filepath.Join(t.TempDir(), "new", shape.Name)
			var last Progress
			o := Options{Shape: shape, Seed: 1, DTypes: dtypes, Progress: func(p Progress) { last = p }}
			if err := Write(context.Background(), dir, o); err != nil {
				t.Fatal(err)
			}
			if last.Written != last.Total || last.Total != o.Bytes() {
				t.Errorf("progress ended at %+v of %d", last, o.Bytes())
			}
			c, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
			if !reflect.DeepEqual(c.Config, shape.Config) {
				t.Errorf("config of %s read back as %+v", shape.Name, c.Config)
			}
			if c.Bytes() != o.Bytes() {
				t.Errorf("%d bytes of weights, announced %d", c.Bytes(), o.Bytes())
			}
			if files := len(c.Summary().Components[0].Files); files < 2 {
				t.Errorf("the language model lies in %d file, want shards", files)
			}
			for _, component := range checkpoint.Components() {
				for _, name := range c.Names(component) {
					tensor, _ := c.Tensor(component, name)
					if tensor.DType != dtypes.of(component) {
						t.Errorf("%s is %s", name, tensor.DType)
					}
					checkNumbers(t, tensor)
					n++
				}
			}
			c.Close()
			partial, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*.partial-*"))
			if len(partial) > 0 {
				t.Errorf("left behind: %v", partial)
			}
		}
	}
	t.Logf("examined %d tensors", n)
}

// checkNumbers fails for numbers that no weight has, and for a large tensor that does
// not vary.
func checkNumbers(t *testing.T, tensor checkpoint.Tensor) {
	t.Helper()
	values := floats(tensor)
	var sum, squares float64
	for _, x := range values {
		if math.IsNaN(x) || math.Abs(x) > 20 {
			t.Fatalf("%s holds %v", tensor.Name, x)
		}
		sum += x
		squares += x * x
	}
	n := float64(len(values))
	deviation := math.Sqrt(squares/n - sum/n*sum/n)
	if len(values) > 1 && deviation < 1e-3 {
		t.Errorf("%s has a standard deviation of %v", tensor.Name, deviation)
	}
}

func floats(tensor checkpoint.Tensor) []float64 {
	size := tensor.DType.Size()
	out := make([]float64, tensor.Elements())
	for i := range out {
		b := tensor.Data[i*size:]
		if tensor.DType == checkpoint.BF16 {
			out[i] = float64(math.Float32frombits(uint32(b[0])<<16 | uint32(b[1])<<24))
		} else {
			out[i] = float64(math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
		}
	}
	return out
}

// TestDeterministic pins the bytes, so that a checkpoint named by shape and seed means
// the same on every machine and in every version.
func TestDeterministic(t *testing.T) {
	const want = "e2e8eb1b0794a36d"
	spec := checkpoint.Spec{Component: "transformer", Name: "proj_in.weight", Shape: []int{99, 101}}
	r, err := ruleFor(spec, tiny().Config)
	if err != nil {
		t.Fatal(err)
	}
	f := newFiller(7, spec, r, checkpoint.F32)
	whole := make([]byte, 4*99*101)
	f.fill(whole, 0)
	sum := sha256.Sum256(whole)
	if got := hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("the numbers have the hash %s, want %s", got, want)
	}
	for _, first := range []int{0, 1, 4095, 4097, 9998} {
		part := make([]byte, min(4*5000, len(whole)-4*first))
		f.fill(part, first)
		if !bytes.Equal(part, whole[4*first:4*first+len(part)]) {
			t.Errorf("numbers from %d on differ from those of the whole tensor", first)
		}
	}
	other := make([]byte, len(whole))
	newFiller(8, spec, r, checkpoint.F32).fill(other, 0)
	if bytes.Equal(other, whole) {
		t.Error("another seed gives the same numbers")
	}
}

func TestMoments(t *testing.T) {
	spec := checkpoint.Spec{Component: "x", Name: "y", Shape: []int{1 << 18}}
	f := newFiller(1, spec, rule{mean: 1.25, std: 0.2}, checkpoint.F32)
	data := make([]byte, 4<<18)
	f.fill(data, 0)
	var sum, squares float64
	values := floats(checkpoint.Tensor{DType: checkpoint.F32, Shape: spec.Shape, Data: data})
	for _, x := range values {
		sum += x
		squares += x * x
	}
	mean := sum / float64(len(values))
	std := math.Sqrt(squares/float64(len(values)) - mean*mean)
	// Five standard errors: 0.2/sqrt(2^18) = 3.9e-4 for the mean, less for a uniform
	// distribution's deviation.
	if math.Abs(mean-1.25) > 0.002 || math.Abs(std-0.2) > 0.002 {
		t.Errorf("mean %v and deviation %v, want 1.25 and 0.2", mean, std)
	}
	t.Logf("examined %d numbers", len(values))
}

func TestBfloat16(t *testing.T) {
	for _, test := range []struct {
		x    float32
		want uint16
	}{
		{1, 0x3f80}, {-1, 0xbf80}, {0, 0},
		{1 + 1.0/256, 0x3f80},     // a tie, to even: down
		{1 + 3.0/256, 0x3f82},     // a tie, to even: up
		{1 + 1.001/256, 0x3f81},   // above a tie
		{1.9999999, 0x4000},       // carries into the exponent
		{-0.33333334, 0xbeab},     //
		{3.4e38, 0x7f80},          // beyond the largest
		{1.1754944e-38, 0x0080},   // the smallest normal one
		{9.1835e-41, 0x0001},      // subnormal
		{-1 - 1.0/256, 0xbf80},    //
		{-1 - 3.0/256, 0xbf82},    //
		{0.0078125 * 3.5, 0x3ce0}, //
	} {
		if got := bfloat16(test.x); got != test.want {
			t.Errorf("bfloat16(%v) = %#04x, want %#04x", test.x, got, test.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{Shape: tiny(), DTypes: Published}
	if err := Write(context.Background(), dir, o); err == nil || !strings.Contains(err.Error(), "precious") {
		t.Errorf("a folder with a file in it: %v", err)
	}
	o.DTypes = "f8"
	if err := Write(context.Background(), filepath.Join(dir, "x"), o); err == nil || !strings.Contains(err.Error(), "f8") {
		t.Errorf("unknown types: %v", err)
	}
	if _, err := ShapeNamed("huge"); err == nil || !strings.Contains(err.Error(), "tiny, aligned, medium, full") {
		t.Errorf("unknown shape: %v", err)
	}
}

func TestCancel(t *testing.T) {
	parent := t.TempDir()
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	o := Options{Shape: aligned(), DTypes: F32, Progress: func(Progress) { cancel(stop) }}
	if err := Write(ctx, filepath.Join(parent, "x"), o); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left behind %v, %v", entries, err)
	}
}

// TestWithLayers: fewer layers, and each of those left is the same to the byte.
func TestWithLayers(t *testing.T) {
	whole, err := ShapeNamed("tiny")
	if err != nil {
		t.Fatal(err)
	}
	few, err := whole.WithLayers(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 0, 3, 1000} { // tiny's depth decoder has two
		if _, err := whole.WithLayers(n); err == nil {
			t.Errorf("%d layers of tiny", n)
		}
	}
	open := func(s Shape) *checkpoint.Checkpoint {
		t.Helper()
		dir := filepath.Join(t.TempDir(), s.Name)
		if err := Write(context.Background(), dir, Options{Shape: s, DTypes: Published}); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := open(whole), open(few)
	n := 0
	for _, component := range checkpoint.Components() {
		for _, name := range b.Names(component) {
			x, ok := a.Tensor(component, name)
			y, _ := b.Tensor(component, name)
			if !ok || !bytes.Equal(x.Data, y.Data) {
				t.Errorf("%s %s differs with fewer layers", component, name)
			}
			n++
		}
	}
	if c := b.Config; c.LanguageModel.Layers != 1 || c.DepthDecoder.Layers != 1 || c.Transformer.Layers != 1 {
		t.Errorf("%+v", c)
	}
	t.Logf("%d tensors", n)
}
