package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"skald/host/compute"
)

// TestSpread: rows that are read from a copy give the bits of rows that are not, which
// are those of calls with fewer rows.
func TestSpread(t *testing.T) {
	const width, out, rows = 1024, 5, 6
	if !crowded(width) {
		t.Fatal("this width would not be copied")
	}
	for _, l := range knownLevels() {
		d, err := New(Options{Threads: 2, Level: string(l)})
		if err != nil {
			t.Logf("NOT EXAMINED: %v", err)
			continue
		}
		defer d.Close()
		q, err := d.NewQueue()
		if err != nil {
			t.Fatal(err)
		}
		buffer := func(v []float32) compute.Buffer {
			b, err := d.NewBuffer(compute.F32, len(v))
			if err != nil {
				t.Fatal(err)
			}
			q.Upload(b, v)
			return b
		}
		numbers := func(b compute.Buffer) []float32 {
			v := make([]float32, b.Len())
			if err := q.Download(v, b); err != nil {
				t.Fatal(err)
			}
			return v
		}
		load := func(use compute.Use, shape ...int) compute.Weight {
			var data []byte
			for _, v := range normals(out * width) {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			}
			w, err := d.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: shape, Data: data}, use, compute.F32)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		x := buffer(normals(rows * width))
		matrix, kernel := load(compute.UseLinear, out, width), load(compute.UseConv, out, width, 1)
		y, z := buffer(make([]float32, rows*out)), buffer(make([]float32, rows*out))
		q.Linear(x, rows, compute.Linear{Y: y, W: matrix})
		q.Conv1D(z, x, compute.Conv{Batch: 2, Length: rows / 2, W: kernel, Dilation: 1})
		for r := 0; r < rows; r += rows / 2 {
			part := x.Slice(r*width, (r+rows/2)*width)
			one, other := buffer(make([]float32, rows/2*out)), buffer(make([]float32, rows/2*out))
			q.Linear(part, rows/2, compute.Linear{Y: one, W: matrix})
			q.Conv1D(other, part, compute.Conv{Batch: 1, Length: rows / 2, W: kernel, Dilation: 1})
			same(t, fmt.Sprintf("%s: Linear from row %d", l, r), numbers(one), numbers(y.Slice(r*out, (r+rows/2)*out)))
			same(t, fmt.Sprintf("%s: Conv1D from row %d", l, r), numbers(other), numbers(z.Slice(r*out, (r+rows/2)*out)))
		}
	}
}

func TestCrowded(t *testing.T) {
	for width, want := range map[int]bool{4: false, 96: false, 256: false, 512: false, 768: false, 1023: false, 1024: true, 1536: false, 2048: true, 4096: true, 12288: true} {
		if crowded(width) != want {
			t.Errorf("width %d: %v", width, !want)
		}
	}
}
