package main

// finishing makes the last step of products and convolutions: bias, residual, rounding.
func finishing(arch string) *file {
	f := &file{name: "finish", arch: arch}
	f.perLevel("finish", "(f *finish)", "finishes rows of sums; there must be one.", finish)
	return f
}

func finish(l *lanes) {
	args := l.load("f")
	argument := func(name string) general {
		r := l.general()
		l.op("MOVQ", field(args, "finish", name), r)
		return r
	}
	sums, y, bias, residual, rows := argument("sums"), argument("y"), argument("bias"), argument("residual"), argument("rows")
	rounding := newRounder(l, true)

	l.mark("row")
	l.op("MOVQ", field(args, "finish", "columns"), cx)
	l.eachOf("columns", func() {
		place := map[bool]label{false: "whole", true: "part"}[l.tail]
		skip := func(to label, name string) {
			l.op("CMPB", field(args, "finish", name), 0)
			l.op("JEQ", to)
		}
		v := l.get(sums)
		biased, rounded, store := place+"Biased", place+"Rounded", place+"Store"
		l.op("TESTQ", bias, bias)
		l.op("JZ", biased)
		b := l.get(bias)
		l.op("VADDPS", b, v, v)
		l.drop(b)
		l.mark(biased)
		skip(rounded, "round")
		rounding.round(l, v)
		l.mark(rounded)
		l.op("TESTQ", residual, residual)
		l.op("JZ", store)
		r := l.get(residual)
		l.op("VADDPS", v, r, v)
		l.drop(r)
		skip(store, "round")
		rounding.round(l, v)
		l.mark(store)
		l.put(v, y)
	})
	l.op("ADDQ", field(args, "finish", "sumsRow"), sums)
	l.op("ADDQ", field(args, "finish", "yRow"), y)
	l.op("TESTQ", residual, residual)
	l.op("JZ", label("next"))
	l.op("ADDQ", field(args, "finish", "yRow"), residual)
	l.mark("next")
	l.op("SUBQ", 1, rows)
	l.op("JNZ", label("row"))
}
