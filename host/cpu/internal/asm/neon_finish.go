package main

import "fmt"

// neonFinishing makes the last step of products and convolutions: bias, residual,
// rounding.
func neonFinishing() *file {
	f := &file{name: "finish", arch: "arm64"}
	f.neonFunction("finish", "(f *finish)", "finishes rows of sums; there must be one.", neonFinish)
	return f
}

func neonFinish(a *neon) {
	f := a.load("f")
	names := []string{"sums", "y", "bias", "residual", "rows"}
	var whole, moving []armGeneral
	for _, name := range names {
		whole = append(whole, a.field(f, "finish", name))
	}
	for range names[:4] {
		moving = append(moving, a.r())
	}
	sums, y, bias, residual := moving[0], moving[1], moving[2], moving[3]
	rows, round, count := whole[4], a.r(), a.r()
	a.op("MOVBU", fmt.Sprintf("finish_round(%v)", f), round)
	rounder := newNEONRounder(a, true)

	a.mark("row")
	for i, r := range moving {
		a.op("MOVD", whole[i], r)
	}
	a.op("MOVD", fmt.Sprintf("finish_columns(%v)", f), count)
	a.each("columns", count, moving, func() {
		place := map[bool]label{false: "whole", true: "part"}[a.tail]
		v := a.get(sums)
		add := func(name string, array armGeneral, whole armGeneral) {
			a.op("CBZ", whole, place+label(name))
			b := a.get(array)
			a.fadd(v, b, v)
			a.free(b)
			a.mark(place + label(name))
		}
		rounded := func(name string) {
			a.op("CBZ", round, place+label(name))
			rounder.round(a, v)
			a.mark(place + label(name))
		}
		add("Biased", bias, whole[2])
		rounded("Rounded")
		add("Added", residual, whole[3])
		rounded("Store") // twice is once where there is no residual
		a.put(v, y)
	})
	step := a.field(f, "finish", "sumsRow")
	a.op("ADD", step, whole[0])
	a.op("MOVD", fmt.Sprintf("finish_yRow(%v)", f), step)
	a.op("ADD", step, whole[1])
	a.op("CBZ", whole[3], label("next"))
	a.op("ADD", step, whole[3])
	a.mark("next")
	a.op("SUBS", 1, rows)
	a.op("BNE", label("row"))
}
