package main

// identification makes the access to CPUID.
func identification() *file {
	f := &file{name: "cpuid", arch: "amd64"}
	fn := f.function("cpuid", "(leaf, subleaf uint32) (a, b, c, d uint32)",
		"cpuid returns what the processor says about itself; leaf and subleaf number the question.")
	fn.op("MOVL", fn.argument("leaf"), "AX")
	fn.op("MOVL", fn.argument("subleaf"), "CX")
	fn.op("CPUID")
	for _, r := range []string{"a", "b", "c", "d"} {
		fn.op("MOVL", map[string]string{"a": "AX", "b": "BX", "c": "CX", "d": "DX"}[r], fn.argument(r))
	}
	fn.op("RET")
	return f
}
