//go:build cgo && !nocuda

package cuda

// #include "skald_kernels.h"
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"skald/host/compute"
)

func (q *queue) Linear(x compute.Buffer, rows int, group ...compute.Linear) {
	o := operands{op: "Linear"}
	o.size("rows", rows)
	if rows == 0 || len(group) == 0 {
		return
	}
	k := o.matrix("W", group[0].W).shape[1]
	in := o.floats("x", x, rows*k)
	products := make([]C.skald_product, len(group))
	for i := range group {
		products[i] = o.product(i, &group[i], in, rows, k)
	}
	t := C.int(o.dtype)
	q.add("Linear", func() error {
		return kernel(C.skald_linear(t, pointer(in.at), C.int(rows), C.int(k), &products[0], C.int(len(products)), q.s()))
	})
}

// product unwraps product i of a group.
func (o *operands) product(i int, g *compute.Linear, x *buffer, rows, k int) C.skald_product {
	w := o.matrix("W", g.W)
	n := w.shape[0]
	if w.shape[1] != k {
		o.fail("W of product %d has shape %v, K is %d", i, w.shape, k)
	}
	if w.at == 0 {
		o.fail("W of product %d was loaded as a cold table", i)
	}
	stride := g.Stride
	if stride == 0 {
		stride = n
	}
	if stride < n {
		o.fail("Stride is %d, want at least N = %d", stride, n)
	}
	size := (rows-1)*stride + n
	y := o.floats("Y", g.Y, size)
	o.apart("Y", y, size, "x", x, rows*k)
	p := C.skald_product{y: pointer(y.at), stride: C.int64_t(stride), w: w.c(), n: C.int32_t(n),
		bias: floats(o.vector("Bias", g.Bias, n))}
	if g.Residual != nil {
		residual := o.floats("Residual", g.Residual, size)
		o.inPlace("Y", y, "Residual", residual, size)
		p.residual = pointer(residual.at)
	}
	return p
}

func (q *queue) EmbedSum(y compute.Buffer, rows int, ids compute.Buffer, stride int, parts []compute.TablePart, scale float32) {
	o := operands{op: "EmbedSum"}
	o.size("rows", rows)
	if len(parts) == 0 || len(parts) > C.SKALD_PARTS {
		o.fail("%d parts, want 1 to %d", len(parts), C.SKALD_PARTS)
	}
	if stride < len(parts) {
		o.fail("stride is %d, there are %d parts", stride, len(parts))
	}
	if rows == 0 {
		return
	}
	width, cold := 0, false
	list := make([]C.skald_part, len(parts))
	for i, p := range parts {
		table := o.matrix("Table", p.Table)
		if i == 0 {
			width = table.shape[1]
		}
		if table.shape[1] != width {
			o.fail("table %d has shape %v, the first has rows of %d", i, table.shape, width)
		}
		cold = cold || table.use == compute.UseColdTable
		list[i] = C.skald_part{table: table.c(), rows: C.int32_t(table.shape[0]), base: C.int32_t(p.Base)}
	}
	to := o.floats("y", y, rows*width)
	from := o.ints("ids", ids, (rows-1)*stride+len(parts))
	if cold {
		if len(parts) > 1 {
			o.fail("a cold table cannot be one of %d parts", len(parts))
		}
		q.gather(to, rows, from, stride, o.matrix("Table", parts[0].Table), parts[0].Base)
		return
	}
	t := C.int(o.dtype)
	q.add("EmbedSum", func() error {
		return kernel(C.skald_embed_sum(t, pointer(to.at), C.int(rows), C.int(width), ints(from.at), C.int(stride), &list[0], C.int(len(list)), C.float(scale), ints(q.fault), q.s()))
	})
	q.mayFault = true
	q.suspect = !q.recording
}

// gather copies rows of a cold table, which the host has to look up, to y.
func (q *queue) gather(y *buffer, rows int, ids *buffer, stride int, table *weight, base int) {
	if q.recording {
		panic("cuda: EmbedSum of a cold table inside a recording")
	}
	at := make([]int32, (rows-1)*stride+1)
	if q.DownloadInts(at, ids) != nil {
		return
	}
	width := table.shape[1]
	size := width * table.stored.Size()
	for i := range rows {
		if id := base + int(at[i*stride]); id < 0 || id >= table.shape[0] {
			q.fail(fmt.Errorf("cuda: EmbedSum: row %d: id %d with base %d is outside the table, which has %d rows", i, at[i*stride], base, table.shape[0]))
			return
		}
	}
	// What arrives, and behind it, where it must be rounded first, what was rounded.
	rounded := table.dtype == compute.BF16 && y.dtype == compute.F32 && table.stored != compute.BF16
	q.grow(&q.rows, int64(rows)*int64(size+2*width), "rows of a cold table")
	middle := q.rows.at + cu.DevicePtr(rows*size)
	for i := range rows {
		id := base + int(at[i*stride])
		for src, dst := table.cold[id*size:(id+1)*size], q.rows.at+cu.DevicePtr(i*size); len(src) > 0 && q.err == nil; {
			piece := q.stage(len(src))
			n := copy(piece, src)
			q.send("EmbedSum", dst, piece[:n])
			src, dst = src[n:], dst+cu.DevicePtr(n)
		}
	}
	q.add("EmbedSum", func() error {
		from, at := table.stored, q.rows.at
		if rounded {
			if err := convert(compute.BF16, middle, from, at, rows*width, q.stream); err != nil {
				return err
			}
			from, at = compute.BF16, middle
		}
		return convert(y.dtype, y.at, from, at, rows*width, q.stream)
	})
}

func floats(p cu.DevicePtr) *C.float { return (*C.float)(pointer(p)) }
func ints(p cu.DevicePtr) *C.int32_t { return (*C.int32_t)(pointer(p)) }
