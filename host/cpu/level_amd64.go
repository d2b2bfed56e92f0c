//go:build !noasm

package cpu

import "golang.org/x/sys/cpu"

// machineLevels returns the levels this machine has, and the one that is fastest.
func machineLevels() (available []level, fastest level) {
	x := &cpu.X86
	available = []level{levelGo}
	if !(x.HasAVX2 && x.HasFMA) {
		return available, levelGo
	}
	available = append(available, levelAVX2)
	if !(x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL) {
		return available, levelAVX2
	}
	available, fastest = append(available, levelAVX512), levelAVX512
	if !x.HasAVX512BF16 {
		return available, fastest
	}
	available = append(available, levelAVX512BF16)
	if !intel() {
		// On Intel's cores VDPBF16PS has half of the rate of FMA, on AMD's twice.
		fastest = levelAVX512BF16
	}
	if x.HasAMXTile && x.HasAMXBF16 && allowTiles() {
		available, fastest = append(available, levelAMX), levelAMX
	}
	return available, fastest
}

// intel tells whether the processor says that Intel made it.
func intel() bool {
	_, b, c, d := cpuid(0, 0)
	return b == 0x756e6547 && d == 0x49656e69 && c == 0x6c65746e // "GenuineIntel"
}

// machineKernels returns the kernels of a level that the machine has. Each level
// begins with those of the one below.
func machineKernels(l level) kernels {
	k := portableKernels()
	if l == levelGo {
		return k
	}
	k.widen = widenBlocks(widenAVX2)
	k.panels = panelKernels{tilesAVX2(), packF32AVX2, packBF16AVX2, finishAVX2}
	k.useElementsAVX2()
	if l == levelAVX2 {
		return k
	}
	k.widen = widenBlocks(widenAVX512)
	k.panels = panelKernels{tilesAVX512(), packF32AVX512, packBF16AVX512, finishAVX512}
	k.useElementsAVX512()
	if l == levelAVX512 {
		return k
	}
	if l == levelAVX512BF16 {
		k.bf16Linear = func() bf16Linear { return &dotLinear{} }
		k.packPairs = packAllPairs
		return k
	}
	k.bf16Linear = func() bf16Linear { return &amxLinear{} }
	k.convolvePairs = (*queue).convolveTiles
	k.attendBF16 = (*queue).attendTiles
	return k
}
