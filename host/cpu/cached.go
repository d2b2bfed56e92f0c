package cpu

import "skald/host/compute"

// Attention over the cache is two products with its panels, for the query heads that
// share a key head: scores, of the queries with the keys, and mix, of the weights with the
// values. Every result is one running sum in the order of its index.

const (
	cachedRows   = 4 // query heads that a kernel takes at once, if it takes more than one
	cachedPanels = 4 // panels that a kernel takes at once, at most
)

// cachedKernels are the two products for one row of x and for cachedRows of them.
type cachedKernels struct {
	scores1, scores4, mix1, mix4 func(*cachedTile)
}

// cachedKernels returns those for a cache of type d.
func (k *kernels) cachedKernels(d compute.DType) *cachedKernels {
	if d == compute.BF16 {
		return &k.cachedBF16
	}
	return &k.cachedF32
}

func portableCached() cachedKernels {
	return cachedKernels{(*cachedTile).scores, (*cachedTile).scores, (*cachedTile).mix, (*cachedTile).mix}
}

// cachedTile is what a product is told. The assembly knows the names of the fields.
type cachedTile struct {
	x, sums       []float32
	rows          int // of x and of sums
	xRow, sumsRow int // bytes from one row to the next

	// The cache, and where in it things begin: for scores, count panels of keys; for mix,
	// the values of count blocks. Kernels that take several panels at once compute sums up
	// to a multiple of cachedPanels, and look as many places ahead.
	floats  []float32
	bits    []uint16
	offsets []int
	count   int

	k         int // numbers of x for one panel; of mix for one block
	last      int // of mix, for the last block
	panels    int // of mix: of the values of one block
	panelSize int // numbers from one of them to the next

	//lint:ignore U1000 only the assembly uses them
	done, group int // how far it is
}

// row returns numbers lo to hi of a row of x.
func (t *cachedTile) row(r, lo, hi int) []float32 { return t.x[r*t.xRow/4+lo : r*t.xRow/4+hi] }

// sum returns the sums of a row for one panel.
func (t *cachedTile) sum(r, panel int) *[panelColumns]float32 {
	return (*[panelColumns]float32)(t.sums[r*t.sumsRow/4+panel*panelColumns:])
}

// scores: sums[r, panel i] = sum over k of x[r, k] * panel i [k].
func (t *cachedTile) scores() {
	for i := range t.count {
		for r := range t.rows {
			sums := t.sum(r, i)
			clear(sums[:])
			t.add(sums, t.row(r, 0, t.k), t.offsets[i])
		}
	}
}

// mix: sums[r, panel i] += sum over all positions of x[r, position] * panel i [position].
func (t *cachedTile) mix() {
	for b := range t.count {
		n := t.k
		if b == t.count-1 {
			n = t.last
		}
		for i := range t.panels {
			for r := range t.rows {
				t.add(t.sum(r, i), t.row(r, b*t.k, b*t.k+n), t.offsets[b]+i*t.panelSize)
			}
		}
	}
}

// add adds, for each number of x, its product with the 16 of the panel at that index.
func (t *cachedTile) add(sums *[panelColumns]float32, x []float32, panel int) {
	const pair = 2 * panelColumns
	for c := 0; c < panelColumns; c += 4 {
		s := (*[4]float32)(sums[c:])
		s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
		if t.bits == nil {
			for k, a := range x {
				w := (*[4]float32)(t.floats[panel+k*panelColumns+c:])
				s0 += float32(a * w[0])
				s1 += float32(a * w[1])
				s2 += float32(a * w[2])
				s3 += float32(a * w[3])
			}
		} else {
			for k, a := range x {
				w := (*[7]uint16)(t.bits[panel+k/2*pair+2*c+k%2:])
				s0 += float32(a * bf16Float(w[0]))
				s1 += float32(a * bf16Float(w[2]))
				s2 += float32(a * bf16Float(w[4]))
				s3 += float32(a * bf16Float(w[6]))
			}
		}
		s[0], s[1], s[2], s[3] = s0, s1, s2, s3
	}
}
