package cpu

import "unsafe"

// bf16Linear computes Linear for weights that are bfloat16, where there are
// instructions that multiply such numbers. Every queue has its own.
type bf16Linear interface {
	// linear runs t, whose weights are all stored as bits, or returns false if it is
	// not the one to do it. work is as in pool.run.
	linear(q *queue, t *linearTask, work int) bool
}

// allBits tells whether all weights of t are bfloat16.
func (t *linearTask) allBits() bool {
	for i := range t.products {
		if t.products[i].w.bits == nil {
			return false
		}
	}
	return true
}

// columns is how many numbers a row of the results has.
func (t *linearTask) columns() (n int) {
	for i := range t.products {
		n += t.products[i].n
	}
	return n
}

// cut makes chunks, as many for each product as count says, and returns how many there
// are.
func (t *linearTask) cut(count func(p *product) int) (chunks int) {
	t.tiles = 0
	for i := range t.products {
		p := &t.products[i]
		p.first = t.tiles
		t.tiles += count(p)
	}
	return t.tiles
}

// dotProduct is what the kernels are told. Strides are in bytes. The assembly knows
// the names of the fields.
type dotProduct struct {
	sums   *float32 // [rows of x][rows of W]
	x, w   *uint16
	wPanel int
	pairs  int // a multiple of 16
}

// stepTerms is how many terms of a sum the instructions for tiles add at once. Sums of
// bfloat16 products are cut in such steps; the last one is filled up with zeros.
const stepTerms = 32

// stepsOf returns how many steps k terms take, and how many terms the last one has.
func stepsOf(k int) (steps, tail int) {
	steps = ceilDiv(k, stepTerms)
	return steps, k - (steps-1)*stepTerms
}

// aligned is grown for memory that begins at a multiple of 64 bytes.
func aligned[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		var zero T
		size := int(unsafe.Sizeof(zero))
		b := make([]T, n+64/size)
		skip := int(-uintptr(unsafe.Pointer(&b[0]))%64) / size
		*buf = b[skip:]
	}
	return (*buf)[:n]
}
