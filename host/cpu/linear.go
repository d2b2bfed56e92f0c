package cpu

import "skald/host/compute"

// A product is cut in tiles of tileRows x tileColumns results. Within a tile four
// columns go through all of K before the next four begin, so that the weight is read
// as four streams; a bfloat16 weight is widened once per tile and block of K.
const (
	tileRows    = 64
	tileColumns = 64
)

// linearTask is one call of Linear.
type linearTask struct {
	x       []float32
	rows, k int
	stride  int // from one row of x to the next, for tiles
	round   rounding

	products []product
	tiles    int // of all products
}

// product is one compute.Linear, unwrapped.
type product struct {
	y, residual []float32
	stride      int
	w           *weight
	n           int
	bias        []float32
	first       int // its first tile
	cut         cut
}

func (q *queue) Linear(x compute.Buffer, rows int, group ...compute.Linear) {
	o := operands{op: "Linear"}
	o.size("rows", rows)
	if rows == 0 || len(group) == 0 {
		return
	}
	t := &q.linear
	t.rows, t.tiles = rows, 0
	work := 0
	t.products = t.products[:0]
	blocks := ceilDiv(rows, tileRows)
	for i := range group {
		g := &group[i]
		w := o.matrix("W", g.W)
		n, k := w.shape[0], w.shape[1]
		if i == 0 {
			t.k = k
			t.x = o.floats("x", x, rows*k)
		}
		if k != t.k {
			o.fail("W of product %d has shape %v, K is %d", i, w.shape, t.k)
		}
		p := product{w: w, n: n, stride: g.Stride, bias: o.vector("Bias", g.Bias, n), first: t.tiles}
		if p.stride == 0 {
			p.stride = n
		}
		if p.stride < n {
			o.fail("Stride is %d, want at least N = %d", p.stride, n)
		}
		size := (rows-1)*p.stride + n
		p.y = o.floats("Y", g.Y, size)
		o.apart("Y", p.y, "x", t.x)
		if g.Residual != nil {
			p.residual = o.floats("Residual", g.Residual, size)
			o.inPlace("Y", p.y, "Residual", p.residual)
		}
		if q.pool.kernels.panels.there() {
			p.cut = q.cut(rows, ceilDiv(n, panelColumns), min(k, longK), w.panels != nil)
			t.tiles += p.cut.chunks()
		} else {
			t.tiles += blocks * ceilDiv(n, tileColumns)
		}
		t.products = append(t.products, p)
		work += rows * n * k
	}
	t.round = o.dtype == compute.BF16
	if q.bf16 != nil && t.allBits() && q.bf16.linear(q, t, work/vectorGain) {
		return
	}
	if q.pool.kernels.panels.there() {
		t.x, t.stride = q.spread(t.x, rows, t.k)
		q.run((*panelLinear)(t), t.tiles, work/vectorGain)
		return
	}
	q.run(t, t.tiles, work)
}

// of returns the product that chunk i belongs to, and its number within.
func (t *linearTask) of(i int) (*product, int) {
	p := &t.products[len(t.products)-1]
	for j := range t.products[1:] {
		if i < t.products[j+1].first {
			p = &t.products[j]
			break
		}
	}
	return p, i - p.first
}

// chunk computes one tile. Tiles of one block of columns follow each other, so that
// its part of the weight is still in the cache.
func (t *linearTask) chunk(i int, s *scratch) {
	p, i := t.of(i)
	blocks := ceilDiv(t.rows, tileRows)
	column, row := i/blocks*tileColumns, i%blocks*tileRows
	rows := min(tileRows, t.rows-row)
	sums := grown(&s.sums, rows)
	for end := min(column+tileColumns, p.n); column < end; column += 4 {
		t.sum(sums, p, row, column, s)
		var bias []float32
		if p.bias != nil {
			bias = p.bias[column:]
		}
		storeTile(p.y, row*p.stride+column, p.stride, p.n-column, sums, bias, p.residual, t.round)
	}
}

// sum multiplies rows of x with four columns of a product.
func (t *linearTask) sum(sums [][4]float32, p *product, row, column int, s *scratch) {
	clear(sums)
	// Beyond the last column the last is computed again, and not stored.
	var at [4]int
	for j := range at {
		at[j] = min(column+j, p.n-1) * t.k
	}
	panel := grown(&s.panel, 4*kBlock)
	for k := 0; k < t.k; k += kBlock {
		n := min(kBlock, t.k-k)
		x := t.x[row*t.k+k:]
		if bits := p.w.bits; bits != nil && len(sums) == 1 {
			dot1x4BF16(&sums[0], x[:n], bits[at[0]+k:], bits[at[1]+k:], bits[at[2]+k:], bits[at[3]+k:])
			continue
		}
		var w [4][]float32
		for j := range w {
			if p.w.bits != nil {
				w[j] = panel[j*kBlock : j*kBlock+n]
				widen(w[j], p.w.bits[at[j]+k:at[j]+k+n])
			} else {
				w[j] = p.w.floats[at[j]+k : at[j]+k+n]
			}
		}
		dotTile(sums, x, t.k, n, &w)
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
