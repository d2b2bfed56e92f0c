package main

import "strings"

// peaks makes loops of nothing but arithmetic.
func peaks() *file {
	f := &file{name: "fma", arch: "amd64", folder: "internal/peak"}
	for _, kind := range tileKinds() {
		name := "fma" + kind.level
		fn := f.function(name, "(turns int)",
			name+" does 12 vectors of multiply-adds a turn that do not wait for each other.")
		turns := fn.load("turns")
		v := vectors(kind.bytes, 0, 14)
		fn.clear(v...)
		fn.times(label(strings.ToLower(kind.level)), turns, 1, func() {
			for _, sum := range v[2:] {
				fn.op("VFMADD231PS", v[0], v[1], sum)
			}
		})
		fn.ret()
	}
	return f
}
