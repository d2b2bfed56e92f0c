package cpu_test

import (
	"math"
	"testing"
	"unsafe"

	"skald/host/compute"
	"skald/host/cpu"
)

// aligned returns n bytes whose address leaves the given rest modulo 8.
func aligned(n, rest int) []byte {
	b := make([]byte, n+16)
	shift := (8 - int(uintptr(unsafe.Pointer(&b[0]))%8) + rest) % 8
	return b[shift : shift+n]
}

// TestPrivateBytes: what can be read from the mapping takes no memory.
func TestPrivateBytes(t *testing.T) {
	const rows, width = 6, 10
	const n = rows * width
	cases := []struct {
		stored, as compute.DType
		use        compute.Use
		rest       int
		want       int64
	}{
		{compute.F32, compute.F32, compute.UseLinear, 0, 0},
		{compute.F32, compute.F32, compute.UseTable, 4, 0},
		{compute.F32, compute.F32, compute.UseLinear, 2, 4 * n},
		{compute.F32, compute.BF16, compute.UseLinear, 0, 2 * n},
		{compute.BF16, compute.BF16, compute.UseLinear, 2, 0},
		{compute.BF16, compute.F32, compute.UseColdTable, 6, 0},
		{compute.BF16, compute.BF16, compute.UseLinear, 1, 2 * n},
		{compute.F16, compute.F32, compute.UseLinear, 0, 4 * n},
		{compute.F16, compute.BF16, compute.UseLinear, 0, 2 * n},
		{compute.F8E4M3, compute.BF16, compute.UseTable, 0, 2 * n},
		{compute.BF16, compute.BF16, compute.UseVector, 0, 4 * n},
		{compute.F32, compute.F32, compute.UseVector, 0, 0},
	}
	d := openWith(t, cpu.Options{Threads: 1, PackBytes: -1})
	var sum int64
	for _, c := range cases {
		data := aligned(n*c.stored.Size(), c.rest)
		w, err := d.Load(compute.Tensor{Name: "w", DType: c.stored, Shape: []int{rows, width}, Data: data}, c.use, c.as)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.PrivateBytes(); got != c.want {
			t.Errorf("%+v: %d private bytes", c, got)
		}
		sum += c.want
	}
	if used := d.Memory().Used; used != sum {
		t.Errorf("%d bytes in use, want %d", used, sum)
	}
	t.Logf("%d weights", len(cases))
}

// TestPanelBytes: the panels of a matrix are private memory, where the level has them.
func TestPanelBytes(t *testing.T) {
	for _, level := range cpu.MachineLevels() {
		d := openWith(t, cpu.Options{Threads: 1, Level: level, PackBytes: 4 * 32 * 10})
		for _, c := range []struct {
			use  compute.Use
			rows int
			want int64
		}{{compute.UseLinear, 17, 4 * 32 * 10}, {compute.UseLinear, 33, 0}, {compute.UseTable, 17, 0}} {
			if level == "go" {
				c.want = 0
			}
			w, err := d.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: []int{c.rows, 10}, Data: aligned(c.rows*40, 0)}, c.use, compute.F32)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.PrivateBytes(); got != c.want {
				t.Errorf("level %s, %+v: %d private bytes", level, c, got)
			}
		}
	}
	t.Logf("levels %v", cpu.MachineLevels())
}

// TestMemory: buffers and caches are counted, given back, and refused when they could
// never fit.
func TestMemory(t *testing.T) {
	d := open(t, 1)
	b, err := d.NewBuffer(compute.BF16, 1000)
	if err != nil {
		t.Fatal(err)
	}
	c := compute.KVConfig{Layers: 2, Heads: 3, HeadDim: 4, BlockSize: 5, Blocks: 6, DType: compute.BF16}
	cache, err := d.NewKVCache(c)
	if err != nil {
		t.Fatal(err)
	}
	if used := d.Memory().Used; used < 4000+c.Bytes() { // more where sizes are padded
		t.Errorf("%d bytes in use, want %d", used, 4000+c.Bytes())
	}
	b.Free()
	cache.Close()
	cache.Close()
	if used := d.Memory().Used; used != 0 {
		t.Errorf("%d bytes in use, want 0", used)
	}
	for _, n := range []int{-1, math.MaxInt, math.MaxInt / 16} {
		if _, err := d.NewBuffer(compute.F32, n); err == nil && (n < 0 || d.Memory().Total > 0) {
			t.Errorf("a buffer of %d numbers", n)
		}
	}
	for _, edit := range []func(*compute.KVConfig){
		func(c *compute.KVConfig) { c.Blocks = 0 },
		func(c *compute.KVConfig) { c.Layers = -1 },
		func(c *compute.KVConfig) { c.Heads, c.HeadDim = 1<<40, 1<<40 },
		func(c *compute.KVConfig) { c.DType = compute.I32 },
	} {
		bad := c
		edit(&bad)
		if _, err := d.NewKVCache(bad); err == nil {
			t.Errorf("a cache of %+v", bad)
		}
	}
	if _, err := d.NewBuffer(compute.F16, 1); err == nil {
		t.Error("a buffer of F16")
	}
}

// TestClosed: a closed device hands nothing out.
func TestClosed(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.NewBuffer(compute.F32, 1); err == nil {
		t.Error("a buffer of a closed device")
	}
	if _, err := d.NewQueue(); err == nil {
		t.Error("a queue of a closed device")
	}
	if _, err := cpu.New(cpu.Options{Threads: -1}); err == nil {
		t.Error("-1 threads")
	}
}

// TestWeightBytes: at every level, what a weight takes is what was said beforehand.
func TestWeightBytes(t *testing.T) {
	const rows, width, taps = 34, 50, 3
	types := []compute.DType{compute.F32, compute.BF16, compute.F16, compute.F64, compute.F8E4M3, compute.F8E5M2}
	uses := []compute.Use{compute.UseLinear, compute.UseTable, compute.UseColdTable, compute.UseVector, compute.UseConv, compute.UseConvTranspose}
	examined := 0
	for _, level := range cpu.MachineLevels() {
		for _, pack := range []int64{-1, 0, 1000, 1 << 40} {
			d := openWith(t, cpu.Options{Threads: 2, Level: level, PackBytes: pack})
			estimator := d.(compute.Estimator)
			for _, stored := range types {
				for _, use := range uses {
					for _, as := range []compute.DType{compute.F32, compute.BF16} {
						for _, rest := range []int{0, 1} {
							x := compute.Tensor{Name: "w", DType: stored, Shape: []int{rows, width}}
							if use == compute.UseConv || use == compute.UseConvTranspose {
								x.Shape = append(x.Shape, taps)
							}
							n := stored.Size()
							for _, s := range x.Shape {
								n *= s
							}
							if rest > 0 {
								x.Data = aligned(n, rest)
							}
							inPlace, private := estimator.WeightBytes(x, use, as)
							x.Data = aligned(n, rest)
							w, err := d.Load(x, use, as)
							if err != nil {
								t.Fatal(err)
							}
							if got := w.PrivateBytes(); got != private {
								t.Errorf("%s, packing %d: %v for use %d as %v, %d beside 8: %d private bytes, %d said before", level, pack, stored, use, as, rest, got, private)
							}
							if inPlace != 0 && inPlace != int64(n) || inPlace == 0 && private == 0 {
								t.Errorf("%s, packing %d: %v for use %d as %v: %d bytes in place, %d private, of %d", level, pack, stored, use, as, inPlace, private, n)
							}
							examined++
						}
					}
				}
			}
		}
	}
	t.Logf("examined %d weights", examined)
}

// TestMemoryBytes: buffers and caches take what was said beforehand.
func TestMemoryBytes(t *testing.T) {
	d := openWith(t, cpu.Options{Threads: 1})
	estimator := d.(compute.Estimator)
	var want int64
	for _, dtype := range []compute.DType{compute.F32, compute.BF16} {
		c := compute.KVConfig{Layers: 2, Heads: 3, HeadDim: 24, BlockSize: 5, Blocks: 7, DType: dtype}
		if _, err := d.NewKVCache(c); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewBuffer(dtype, 77); err != nil {
			t.Fatal(err)
		}
		want += estimator.KVCacheBytes(c) + estimator.BufferBytes(dtype, 77)
	}
	if used := d.Memory().Used; used != want {
		t.Errorf("%d bytes in use, %d said before", used, want)
	}
}
