package main

// widening makes the conversion of bfloat16 to float32.
func widening() *file {
	f := &file{name: "widen", arch: "amd64"}
	for _, w := range []struct {
		name  string
		bytes int
	}{{"widenAVX2", 32}, {"widenAVX512", 64}} {
		fn := f.function(w.name, "(dst *float32, src *uint16, blocks int)",
			w.name+" converts blocks of 32 numbers; blocks must be positive.")
		dst, src, blocks := fn.load("dst"), fn.load("src"), fn.load("blocks")
		fn.times("block", blocks, 1, func() {
			for i, v := range vectors(w.bytes, 0, 32/(w.bytes/4)) {
				fn.op("VPMOVZXWD", at(src, i*w.bytes/2), v)
				fn.op("VPSLLD", 16, v, v)
				fn.op("VMOVUPS", v, at(dst, i*w.bytes))
			}
			fn.op("ADDQ", 64, src)
			fn.op("ADDQ", 128, dst)
		})
		fn.ret()
	}
	return f
}
