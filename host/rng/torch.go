package rng

import (
	"fmt"
	"math"
)

// Torch is torch's CPU generator as of torch 2.7 and later on x86 with AVX2:
// torch.Generator().manual_seed(seed) and the draws that a song makes of it. It is
// one serial stream; a Torch must not be used from two goroutines at once.
type Torch struct {
	engine mt19937
	// spare is the second normal of a pair of the scalar path, which torch keeps
	// for the next call of that path.
	spare    float64
	hasSpare bool
}

// NewTorch returns the generator with a seed. Like in torch only its low 32 bits
// count; a negative seed of torch is the uint64 of the same bits.
func NewTorch(seed uint64) *Torch {
	t := new(Torch)
	t.engine.seed(uint32(seed))
	return t
}

// Clone returns an independent generator that continues with the same numbers.
func (t *Torch) Clone() *Torch {
	c := *t
	return &c
}

// Span is the range of entries [Lo, Hi) of a draw.
type Span struct{ Lo, Hi int }

// Exponentials is one torch.empty(n).exponential_(1), which is also what
// torch.multinomial divides its n weights by. It consumes 2n outputs of the engine,
// but computes only the entries of the spans and writes them to dst, one span after
// the other. Spans may come in any order and overlap. It panics when a span does
// not lie in [0, n) or dst is not as long as all of them together. It does not
// allocate.
func (t *Torch) Exponentials(n int, spans []Span, dst []float32) {
	total := 0
	for _, s := range spans {
		if s.Lo < 0 || s.Hi < s.Lo || s.Hi > n {
			panic(fmt.Sprintf("rng: span [%d, %d) outside of [0, %d)", s.Lo, s.Hi, n))
		}
		total += s.Hi - s.Lo
	}
	if total != len(dst) {
		panic(fmt.Sprintf("rng: spans hold %d entries, dst holds %d", total, len(dst)))
	}
	m := &t.engine
	for lo := 0; lo < n; {
		var pair [2]uint32
		var words []uint32 // untempered, two for each entry from lo on
		switch left := mtSize - m.at; left {
		case 0:
			m.refill()
			continue
		case 1: // the entry straddles two states
			pair[0] = m.state[m.at]
			m.refill()
			pair[1] = m.state[0]
			m.at = 1
			words = pair[:]
		default:
			k := 2 * min(left/2, n-lo)
			words = m.state[m.at : m.at+k]
			m.at += k
		}
		hi := lo + len(words)/2
		at := 0 // where the span begins in dst
		for _, s := range spans {
			for i := max(lo, s.Lo); i < min(hi, s.Hi); i++ {
				w := words[2*(i-lo):]
				dst[at+i-s.Lo] = float32(negLog(join53(temper(w[0]), temper(w[1]))))
			}
			at += s.Hi - s.Lo
		}
		lo = hi
	}
}

// Normal is torch.randn(len(dst)) in float32.
func (t *Torch) Normal(dst []float32) {
	if len(dst) < 16 {
		t.fewNormals(dst)
		return
	}
	for i := range dst {
		dst[i] = t.engine.uniform24()
	}
	t.normalBlocks(dst)
}

// NormalBF16 is torch.randn(len(dst), dtype=torch.bfloat16), the values held in
// float32. For a length that is no multiple of 16 it consumes less of the stream
// than Normal.
func (t *Torch) NormalBF16(dst []float32) {
	if len(dst) < 16 {
		t.fewNormals(dst)
	} else {
		for i := range dst[:len(dst)&^15] {
			dst[i] = t.engine.uniform24()
		}
		t.normalBlocks(dst)
	}
	for i, x := range dst {
		dst[i] = roundBF16(x)
	}
}

// normalBlocks turns the uniforms in dst, at least 16, into normals, 16 by 16. What
// is left over at the end is covered by a block over the last 16 entries, for which
// new uniforms are drawn.
func (t *Torch) normalBlocks(dst []float32) {
	whole := len(dst) &^ 15
	for i := 0; i < whole; i += 16 {
		normalBlock((*[16]float32)(dst[i:]))
	}
	if whole == len(dst) {
		return
	}
	last := (*[16]float32)(dst[len(dst)-16:])
	for i := range last {
		last[i] = t.engine.uniform24()
	}
	normalBlock(last)
}

// normalBlock pairs uniform j with uniform j+8. A uniform may be 0, so 1 minus it
// goes into the logarithm.
func normalBlock(u *[16]float32) {
	for j := range 8 {
		u[j], u[j+8] = normalPair(1-u[j], u[j+8])
	}
}

// fewNormals is the path of fewer than 16 values: Box-Muller in float64.
func (t *Torch) fewNormals(dst []float32) {
	for i := range dst {
		if t.hasSpare {
			dst[i], t.hasSpare = float32(t.spare), false
			continue
		}
		u1 := float64(t.engine.bits53()) * (1.0 / (1 << 53))
		radius := math.Sqrt(2 * negLog(t.engine.bits53()))
		sin, cos := sincos64(2 * math.Pi * u1)
		dst[i] = float32(float64(radius * cos))
		t.spare, t.hasSpare = float64(radius*sin), true
	}
}
