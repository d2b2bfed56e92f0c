package machine

import "golang.org/x/sys/cpu"

func features() []string {
	x := &cpu.X86
	return present([]feature{
		{"SSE4.2", x.HasSSE42},
		{"F16C", x.HasF16C},
		{"FMA", x.HasFMA},
		{"AVX2", x.HasAVX2},
		{"AVX-VNNI", x.HasAVXVNNI},
		{"AVX512F", x.HasAVX512F},
		{"AVX512BW", x.HasAVX512BW},
		{"AVX512DQ", x.HasAVX512DQ},
		{"AVX512VL", x.HasAVX512VL},
		{"AVX512-VNNI", x.HasAVX512VNNI},
		{"AVX512-BF16", x.HasAVX512BF16},
		{"AMX-TILE", x.HasAMXTile},
		{"AMX-INT8", x.HasAMXInt8},
		{"AMX-BF16", x.HasAMXBF16},
	})
}
