package main

import "fmt"

// sums makes what goes over one row whatever type it has.
func sums(arch string) *file {
	f := &file{name: "sums", arch: arch}

	f.perLevel("sum", "(x []float32) (total float32)", "is sum, with as many partial sums as a vector has lanes.", func(l *lanes) {
		x, total := l.load("x_base"), l.vector()
		l.clear(total)
		l.each("x_len", func() {
			v := l.get(x)
			l.op("VADDPS", v, total, total)
			l.drop(v)
		})
		l.fold(total, "ADD")
		l.op("VMOVSS", total.as(16), l.argument("total"))
	})

	f.perLevel("squares", "(x []float32, mean float32) (total float32)", "is squares, with as many partial sums as a vector has lanes.", func(l *lanes) {
		x, mean, total := l.load("x_base"), l.parameter("mean"), l.vector()
		l.clear(total)
		l.each("x_len", func() {
			v := l.get(x)
			l.op("VSUBPS", mean, v, v)
			l.keep(v)
			l.op("VFMADD231PS", v, v, total)
			l.drop(v)
		})
		l.fold(total, "ADD")
		l.op("VMOVSS", total.as(16), l.argument("total"))
	})

	f.perLevel("axpy", "(y []float32, a float32, x []float32)", "is axpy with fused multiply-add.", func(l *lanes) {
		y, x, a := l.load("y_base"), l.load("x_base"), l.parameter("a")
		l.each("y_len", func() {
			v, w := l.get(y), l.get(x)
			l.op("VFMADD231PS", a, w, v)
			l.drop(w)
			l.put(v, y)
		})
	})

	f.perLevel("firstNotFinite", "(x []float32) (index int)", "is firstNotFinite.", func(l *lanes) {
		x, bits := l.load("x_base"), l.general()
		found := label("found")
		l.each("x_len", func() {
			v := l.get(x)
			l.op("VSUBPS", v, v, v) // not 0 but a NaN
			if l.neon() {
				l.op("VCMPPS", 3, v, v, v)
				l.comment("16 bits of each lane")
				l.word2(xtn4H, "XTN.4H", v, v)
				l.line(fmt.Sprintf("FMOVD F%d, %s", v.n, armRegister(bits)))
				l.op("TESTQ", bits, bits)
				l.op("JNZ", found)
				l.drop(v)
				return
			}
			const unordered = 3
			if l.wide() {
				l.op("VCMPPS", unordered, v, v, spare)
				l.op("KMOVW", spare, bits)
			} else {
				l.op("VCMPPS", unordered, v, v, v)
				l.op("VMOVMSKPS", v, bits)
			}
			l.op("TESTL", bits, bits)
			l.op("JNZ", found)
			l.drop(v)
		})
		l.op("MOVQ", -1, l.argument("index"))
		l.op("VZEROUPPER")
		l.op("RET")
		l.mark(found)
		if l.neon() {
			b := armRegister(bits)
			l.line(fmt.Sprintf("RBIT %s, %s", b, b))
			l.line(fmt.Sprintf("CLZ %s, %s", b, b))
			l.line(fmt.Sprintf("LSR $4, %s", b))
		} else {
			l.op("BSFL", bits, bits)
		}
		l.op("ADDQ", l.index, bits)
		l.op("MOVQ", bits, l.argument("index"))
	})
	return f
}

// roundings makes the conversions to bfloat16.
func roundings(arch string) *file {
	f := &file{name: "round", arch: arch}

	f.perLevel("round", "(x []float32)", "is rounding.slice for bfloat16.", func(l *lanes) {
		x, r := l.load("x_base"), newRounder(l, true)
		l.each("x_len", func() {
			v := l.get(x)
			r.round(l, v)
			l.put(v, x)
		})
	})

	f.perLevel("narrow", "(dst []uint16, src []float32) (done int)",
		"is narrow for the first numbers: done tells how many. AVX2, which has no mask for stores of 16 bits, leaves what is no whole vector.", func(l *lanes) {
			dst, src, r := l.load("dst_base"), l.load("src_base"), newRounder(l, true)
			l.each("dst_len", func() {
				if l.tail && l.bytes == 32 {
					return
				}
				v, place := l.get(src), indexed(dst, l.index, 2, 0)
				r.round(l, v)
				l.op("VPSRLD", 16, v, v)
				switch {
				case l.neon():
					l.word2(xtn4H, "XTN.4H", v, v)
					if l.tail {
						l.line(fmt.Sprintf("VMOV V%d.H[0], %s", v.n, armValue))
						l.line(fmt.Sprintf("MOVH %s, %s", armValue, l.armMemory(place)))
					} else {
						l.line(fmt.Sprintf("FMOVD F%d, %s", v.n, l.armMemory(place)))
					}
				case l.tail:
					l.op("VPMOVDW", v, leftMask, place)
				case l.wide():
					l.op("VPMOVDW", v, place)
				default:
					high := l.vector()
					l.op("VEXTRACTI128", 1, v, high.as(16))
					l.op("VPACKUSDW", high.as(16), v.as(16), v.as(16))
					l.op("VMOVDQU", v.as(16), place)
					l.drop(high)
				}
				l.drop(v)
			})
			done := l.index // AVX2: behind the last whole vector
			if l.bytes != 32 {
				l.op("MOVQ", l.argument("dst_len"), done)
			}
			l.op("MOVQ", done, l.argument("done"))
		})
	return f
}
