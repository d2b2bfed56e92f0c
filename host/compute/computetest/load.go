package computetest

import (
	"bytes"
	"encoding/binary"
	"math"

	"skald/host/compute"
)

// testLoad: every stored type, at every address, read back through EmbedSum.
func testLoad(s *suite) {
	const rows, width = 16, 17 // more than the 256 numbers of an 8-bit type
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(i)
	}
	types := storedTypes()
	for _, stored := range []compute.DType{compute.F32, compute.BF16, compute.F16, compute.F64, compute.F8E4M3, compute.F8E5M2} {
		codes := types[stored]
		values := make([]float64, 0, rows*width)
		var data []byte
		for i := range rows * width {
			code := codes[i*len(codes)/(rows*width)]
			data = append(data, code.bytes...)
			values = append(values, code.value)
		}
		for _, as := range floats {
			for offset := range 3 {
				s.begin()
				// Data may start at any byte of its mapping.
				moved := append(make([]byte, offset, offset+len(data)), data...)[offset:]
				t := compute.Tensor{Name: "stored", DType: stored, Shape: []int{rows, width}, Data: moved}
				w := s.load(t, compute.UseTable, as)
				if w.DType() != as || len(w.Shape()) != 2 || w.Shape()[0] != rows || w.Shape()[1] != width {
					s.Fatalf("%v as %v: type %v, shape %v", stored, as, w.DType(), w.Shape())
				}
				y := s.empty(as, rows*width)
				s.queue.EmbedSum(y, rows, s.ints(ids...), 1, []compute.TablePart{{Table: w}}, 1)
				s.check(stored.String()+" as "+as.String(), s.read(y), intervals(rows*width, func(i int) interval {
					return exactly(values[i]).store(as)
				}))
				if !bytes.Equal(moved, data) {
					s.Fatalf("%v: Load wrote to the tensor", stored)
				}
			}
		}
	}
	ok := compute.Tensor{Name: "bad tensor", DType: compute.F32, Shape: []int{2, 2}, Data: make([]byte, 16)}
	for _, c := range []struct {
		what string
		edit func(t *compute.Tensor, use *compute.Use, as *compute.DType)
	}{
		{"data too short", func(t *compute.Tensor, _ *compute.Use, _ *compute.DType) { t.Data = t.Data[:15] }},
		{"data too long", func(t *compute.Tensor, _ *compute.Use, _ *compute.DType) { t.Data = make([]byte, 20) }},
		{"a shape that overflows", func(t *compute.Tensor, _ *compute.Use, _ *compute.DType) { t.Shape = []int{1 << 62, 8} }},
		{"a negative shape", func(t *compute.Tensor, _ *compute.Use, _ *compute.DType) { t.Shape = []int{-2, -2} }},
		{"integers", func(t *compute.Tensor, _ *compute.Use, _ *compute.DType) { t.DType = compute.I32 }},
		{"as F16", func(_ *compute.Tensor, _ *compute.Use, as *compute.DType) { *as = compute.F16 }},
		{"a matrix as a convolution", func(_ *compute.Tensor, use *compute.Use, _ *compute.DType) { *use = compute.UseConv }},
	} {
		s.begin()
		t, use, as := ok, compute.UseLinear, compute.F32
		c.edit(&t, &use, &as)
		if _, err := s.device.Load(t, use, as); err == nil {
			s.Errorf("%s: loaded", c.what)
		}
	}
}

// code is a stored number.
type code struct {
	bytes []byte
	value float64
}

// storedTypes lists finite numbers of every type: all of the 8-bit ones, and of the
// others zero, subnormals, the largest, and numbers between.
func storedTypes() map[compute.DType][]code {
	le := binary.LittleEndian
	types := map[compute.DType][]code{}
	for i := range 256 {
		if v := small(uint32(i), 4, 3); i&0x7f != 0x7f {
			types[compute.F8E4M3] = append(types[compute.F8E4M3], code{[]byte{byte(i)}, v})
		}
		if v := small(uint32(i), 5, 2); i&0x7c != 0x7c {
			types[compute.F8E5M2] = append(types[compute.F8E5M2], code{[]byte{byte(i)}, v})
		}
	}
	for i := uint32(0); i < 1<<16; i += 97 {
		b := le.AppendUint16(nil, uint16(i))
		if i&0x7c00 != 0x7c00 {
			types[compute.F16] = append(types[compute.F16], code{b, small(i, 5, 10)})
		}
		if i&0x7f80 != 0x7f80 {
			types[compute.BF16] = append(types[compute.BF16], code{b, float64(math.Float32frombits(i << 16))})
		}
		if i&0x7f80 != 0x7f80 {
			x := math.Float32frombits(i<<16 | i)
			types[compute.F32] = append(types[compute.F32], code{le.AppendUint32(nil, math.Float32bits(x)), float64(x)})
			y := float64(x) * (1 + 1e-9)
			types[compute.F64] = append(types[compute.F64], code{le.AppendUint64(nil, math.Float64bits(y)), y})
		}
	}
	return types
}

// small is the value of a finite float of e exponent and m mantissa bits.
func small(b uint32, e, m int) float64 {
	exponent, mantissa := int(b>>m)&(1<<e-1), float64(b&(1<<m-1))
	bias := 1<<(e-1) - 1
	v := math.Ldexp(1+mantissa/float64(int(1)<<m), exponent-bias)
	if exponent == 0 {
		v = math.Ldexp(mantissa/float64(int(1)<<m), 1-bias)
	}
	if b>>(e+m)&1 != 0 {
		return -v
	}
	return v
}
