package cpu

import (
	"fmt"

	"skald/host/compute"
)

// embedTask is one call of EmbedSum; a chunk is some rows.
type embedTask struct {
	y      []float32
	width  int
	ids    []int32
	stride int
	parts  []embedPart
	scale  float32
	span   rowSpan
	round  rounding
}

type embedPart struct {
	table *weight
	base  int
}

func (q *queue) EmbedSum(y compute.Buffer, rows int, ids compute.Buffer, stride int, parts []compute.TablePart, scale float32) {
	o := operands{op: "EmbedSum"}
	o.size("rows", rows)
	if len(parts) == 0 {
		o.fail("no parts")
	}
	if stride < len(parts) {
		o.fail("stride is %d, there are %d parts", stride, len(parts))
	}
	if rows == 0 {
		return
	}
	t := &q.embed
	t.scale, t.stride = scale, stride
	t.parts = t.parts[:0]
	for i, p := range parts {
		table := o.matrix("Table", p.Table)
		if i == 0 {
			t.width = table.shape[1]
		}
		if table.shape[1] != t.width {
			o.fail("table %d has shape %v, the first has rows of %d", i, table.shape, t.width)
		}
		t.parts = append(t.parts, embedPart{table, p.Base})
	}
	t.y = o.floats("y", y, rows*t.width)
	t.ids = o.ints("ids", ids, (rows-1)*stride+len(parts))
	t.round = o.dtype == compute.BF16
	if q.err != nil {
		return
	}
	for i := range rows {
		for j, p := range t.parts {
			id := int(t.ids[i*stride+j])
			if n := p.table.shape[0]; p.base+id < 0 || p.base+id >= n {
				q.fail(fmt.Errorf("cpu: EmbedSum: row %d: id %d with base %d is outside table %d, which has %d rows", i, id, p.base, j, n))
				return
			}
		}
	}
	t.span = spanOf(rows, t.width*len(parts))
	q.run(t, t.span.chunks(), q.elementWork(rows*t.width*len(parts), 2))
}

func (t *embedTask) chunk(i int, s *scratch) {
	for lo, hi := t.span.of(i); lo < hi; lo++ {
		t.row(lo, s)
	}
}

func (t *embedTask) row(i int, s *scratch) {
	y := t.y[i*t.width : (i+1)*t.width]
	ids := t.ids[i*t.stride:]
	buf := grown(&s.panel, t.width)
	part := func(j int) []float32 {
		return t.parts[j].table.row(t.parts[j].base+int(ids[j]), buf, s.kernels)
	}
	e := s.elements(t.round)
	if len(t.parts) == 1 {
		copy(y, part(0))
		e.round(y)
		return
	}
	copy(y, part(1))
	for j := 2; j < len(t.parts); j++ {
		s.f32.add(y, y, part(j))
	}
	e.round(y)
	e.add(y, y, part(0))
	e.scale(y, y, t.scale)
}
