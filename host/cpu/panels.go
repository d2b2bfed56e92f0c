package cpu

// Vector kernels read weights in panels: for 16 columns of a product (rows of the
// weight), the numbers of one k stand side by side, k after k,
//
//	[columns/16][k][16] float32,
//
// with zeros beyond the last column. A lane of a vector is a column of the product.
// Every result is one running sum that takes its products in the order of k, each
// with one fused multiply-add, whatever the tile it is computed in. So tiles of all
// sizes give the same bits.
const panelColumns = 16

// panelKernels are what products and convolutions are made of.
type panelKernels struct {
	tiles    tileTable
	packF32  func(dst, src *float32, stride, blocks int)
	packBF16 func(dst *float32, src *uint16, stride, blocks int)
	finish   func(*finish)
}

// there tells whether the level has such kernels.
func (p *panelKernels) there() bool { return p.finish != nil }

// tileTable holds, by the number of panels (1, 2 and 4) and then of rows, the kernels
// that compute a tile. Not every number of panels has room for every number of rows.
type tileTable [5][]func(*tile)

// rows is how many rows the highest tiles have.
func (t *tileTable) rows() int { return len(t[1]) - 1 }

// tile is what a kernel of tileTable is told: to compute
//
//	sums[r, c] = sum_j sum_k x[r, j, k] * w[c, j, k],
//
// for taps j; a matrix product has one. Strides are in bytes. The assembly knows the
// names of the fields.
type tile struct {
	sums    *float32
	sumsRow int // from one row of sums to the next

	x     *float32 // first number of the first row under the first tap
	xRow  int      // from one row to the next
	xNext int      // from behind the last k of a tap to the next tap

	w      *float32 // first panel, first tap
	wPanel int      // from one panel to the next
	wNext  int      // from behind the last k of a tap to the next tap

	taps, k int
	resume  bool // go on from what is in sums
}

// finish is what the last step is told: y = r(sums + bias), and with a residual
// y = r(residual + r(sums + bias)). Strides are in bytes. The assembly knows the names
// of the fields.
type finish struct {
	sums    *float32
	sumsRow int

	y, residual *float32 // residual is laid out like y, or nil
	yRow        int
	bias        *float32 // or nil

	rows, columns int
	round         bool
	around        bool // write y past the caches; y is aligned to 64 bytes, columns are 16
}

// height is how many rows the next tile takes when so many are left: all tiles are of
// nearly the same height.
func (t *tileTable) height(left int) int { return ceilDiv(left, ceilDiv(left, t.rows())) }

// multiply computes sums [rows, panels*16] with t, which is set but for addresses and
// rows. Strides count numbers.
func (s *scratch) multiply(t *tile, x []float32, xStride int, w []float32, wStride int, rows, panels int, sums []float32) {
	t.xRow, t.wPanel, t.sumsRow = 4*xStride, 4*wStride, 4*panels*panelColumns
	tiles := &s.panels.tiles
	for row := 0; row < rows; {
		high := tiles.height(rows - row)
		for panel := 0; panel < panels; {
			width := 4
			for width > panels-panel || high >= len(tiles[width]) {
				width /= 2
			}
			t.x, t.w, t.sums = &x[row*xStride], &w[panel*wStride], &sums[(row*panels+panel)*panelColumns]
			tiles[width][high](t)
			panel += width
		}
		row += high
	}
}

// store finishes rows of sums [rows, panels*16] to y, where rows begin stride apart;
// columns of them count.
func (s *scratch) store(sums []float32, rows, panels int, y, residual, bias []float32, stride, columns int, round rounding) {
	f := &s.last
	*f = finish{
		sums: &sums[0], sumsRow: 4 * panels * panelColumns,
		y: &y[0], yRow: 4 * stride,
		rows: rows, columns: columns, round: bool(round),
	}
	if residual != nil {
		f.residual = &residual[0]
	}
	if bias != nil {
		f.bias = &bias[0]
	}
	s.panels.finish(f)
}

// packPanel writes the panel of 16 rows of a matrix from row on, numbers k to k+n of
// each. dst has 16 * n numbers.
func (s *scratch) packPanel(dst []float32, w *weight, row, k, n int) {
	rows, width := min(panelColumns, w.shape[0]-row), w.shape[1]
	at, done := row*width+k, 0
	if rows == panelColumns {
		if w.bits != nil {
			done = n &^ 31
			if done > 0 {
				s.panels.packBF16(&dst[0], &w.bits[at], 2*width, done/32)
			}
		} else if done = n &^ 15; done > 0 {
			s.panels.packF32(&dst[0], &w.floats[at], 4*width, done/16)
		}
	}
	for ; done < n; done++ {
		line := dst[done*panelColumns:][:panelColumns]
		for r := range line {
			switch {
			case r >= rows:
				line[r] = 0
			case w.bits != nil:
				line[r] = bf16Float(w.bits[at+r*width+done])
			default:
				line[r] = w.floats[at+r*width+done]
			}
		}
	}
}

// panelBytes is the memory that the panels of a matrix of that shape take.
func panelBytes(shape []int) int64 {
	return 4 * panelColumns * int64(ceilDiv(shape[0], panelColumns)) * int64(shape[1])
}

// pairCount is how many numbers the pairs of a matrix of that shape have, see
// dotLinear.
func pairCount(shape []int) int64 {
	steps, _ := stepsOf(shape[1])
	return int64(ceilDiv(shape[0], panelColumns)) * int64(steps*stepTerms*panelColumns)
}

// packTask makes the panels of a matrix. The workers that make them are those that read
// them: on machines with several memories, pages lie where they are first written.
type packTask struct {
	w      *weight
	panels []float32
}

// packAll makes the panels of a matrix.
func (d *device) packAll(w *weight) []float32 {
	t := &packTask{w: w, panels: make([]float32, panelBytes(w.shape)/4)}
	d.pool.run(d.pool.newJob(), t, ceilDiv(w.shape[0], panelColumns), len(t.panels))
	return t.panels
}

func (t *packTask) chunk(i int, s *scratch) {
	width := t.w.shape[1]
	s.packPanel(t.panels[i*panelColumns*width:][:panelColumns*width], t.w, i*panelColumns, 0, width)
}
