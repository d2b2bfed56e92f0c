//go:build !noasm

package cpu

// machineLevels returns the levels this machine has, and the one that is fastest. Every
// processor that Go runs on as arm64 has NEON.
func machineLevels() (available []level, fastest level) {
	return []level{levelGo, levelNEON}, levelNEON
}

// machineKernels returns the kernels of a level that the machine has. What has none is
// done by the portable code.
func machineKernels(l level) kernels {
	k := portableKernels()
	if l == levelGo {
		return k
	}
	k.panels = panelKernels{tilesNEON(), packF32NEON, packBF16NEON, finishNEON}
	k.cachedF32 = cachedKernels{scores1F32NEON, scores4F32NEON, mix1F32NEON, mix4F32NEON}
	k.cachedBF16 = cachedKernels{scores1BF16NEON, scores4BF16NEON, mix1BF16NEON, mix4BF16NEON}
	k.widen, k.narrow, k.bf16.round = widenBlocks(widenNEON), narrowMost(narrowNEON), roundNEON
	return k
}
