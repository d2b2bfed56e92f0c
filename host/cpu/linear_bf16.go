package cpu

// bf16Linear computes Linear for bfloat16 numbers x and W, where there are instructions
// that multiply such. Every queue has its own.
type bf16Linear interface {
	// linear runs t, whose weights are all stored as bits; work is as in pool.run.
	linear(q *queue, t *linearTask, work int)
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

// dotProduct is what the kernels are told. Strides are in bytes. The assembly knows the
// names of the fields.
type dotProduct struct {
	sums   *float32 // [rows of x][rows of W]
	x, w   *uint16
	wPanel int
	pairs  int // a multiple of 16
}
