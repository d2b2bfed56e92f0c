package cpu

import "math/bits"

// spreadTask copies rows to where they are further apart.
//
// A tile reads one number of each of its rows at a time. When rows begin a multiple of
// 4 KiB apart, as rows of 1024 numbers do, all of these compete for the same few places
// of the first level cache, which then does not even hold the line that the next
// number comes from. One copy is cheaper.
type spreadTask struct {
	dst, src      []float32
	rows          int
	width, stride int
	memory        []float32 // behind dst, kept for the next call
}

// spreadRows is how many rows make a chunk.
const spreadRows = 16

// spread returns x [rows, width] as it should be read by tiles, and from one row to the
// next. It is a copy, valid until the next call, if that is faster.
func (q *queue) spread(x []float32, rows, width int) ([]float32, int) {
	if rows <= 4 || !crowded(width) {
		return x, width
	}
	t := &q.spreading
	t.src, t.rows, t.width, t.stride = x, rows, width, width+16
	t.dst = grown(&t.memory, rows*t.stride)
	q.run(t, ceilDiv(rows, spreadRows), rows*width/vectorGain)
	return t.dst, t.stride
}

func (t *spreadTask) chunk(i int, _ *scratch) {
	for r := i * spreadRows; r < min((i+1)*spreadRows, t.rows); r++ {
		copy(t.dst[r*t.stride:][:t.width], t.src[r*t.width:][:t.width])
	}
}

// crowded tells whether 14 rows of that width begin in the same of the 64 sets of lines
// of 64 bytes that first level caches usually have.
func crowded(width int) bool {
	var sets uint64
	for r := range 14 {
		sets |= 1 << (r * 4 * width / 64 % 64)
	}
	return bits.OnesCount64(sets) == 1
}
