package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"runtime"
	"sync"

	"skald/host/checkpoint"
)

// filler makes the numbers of one tensor. Number i is a function of the seed, the
// tensor's name and i alone, so that any part can be made at any time and adding a
// tensor does not move the others.
type filler struct {
	rule  rule
	key   uint64
	dtype checkpoint.DType
}

func newFiller(seed uint64, spec checkpoint.Spec, r rule, dtype checkpoint.DType) filler {
	name := fnv.New64a()
	name.Write([]byte(spec.Component + "/" + spec.Name))
	return filler{rule: r, key: mix(seed ^ mix(name.Sum64())), dtype: dtype}
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014): a bijection whose
// output looks random for consecutive inputs.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill writes the bytes of the numbers from first on; len(dst) is a multiple of a
// number's size. It uses all cores.
func (f filler) fill(dst []byte, first int) {
	size := f.dtype.Size()
	n := len(dst) / size
	workers := min(runtime.GOMAXPROCS(0), n>>12+1)
	var wg sync.WaitGroup
	for w := range workers {
		lo, hi := n*w/workers, n*(w+1)/workers
		wg.Go(func() { f.fillPart(dst[lo*size:hi*size], first+lo) })
	}
	wg.Wait()
}

func (f filler) fillPart(dst []byte, first int) {
	const block = 4096
	var values [block]float32
	size := f.dtype.Size()
	for len(dst) > 0 {
		part := values[:min(block, len(dst)/size)]
		f.draw(part, first)
		f.encode(dst, part)
		dst = dst[len(part)*size:]
		first += len(part)
	}
}

// draw computes the numbers from first on.
func (f filler) draw(dst []float32, first int) {
	r := f.rule
	mean := float32(r.mean)
	span := float32(r.std * math.Sqrt(3) / (1 << 31)) // a uniform draw of that deviation
	for i := range dst {
		at := uint64(first + i)
		word := mix(f.key + at>>1)
		if at&1 == 1 {
			word >>= 32
		}
		// The conversion keeps arm64 from fusing product and sum.
		dst[i] = mean + float32(span*float32(int32(word)))
	}
	if r.log {
		for i, x := range dst {
			dst[i] = float32(math.Exp(float64(x)))
		}
	}
	for i := max(r.lo, first); i < min(r.hi, first+len(dst)); i++ {
		dst[i-first] *= float32(r.factor)
	}
}

func (f filler) encode(dst []byte, values []float32) {
	if f.dtype == checkpoint.BF16 {
		for i, x := range values {
			binary.LittleEndian.PutUint16(dst[2*i:], bfloat16(x))
		}
		return
	}
	for i, x := range values {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

// bfloat16 rounds a finite number to the nearest, ties to even.
func bfloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
