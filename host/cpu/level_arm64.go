//go:build !noasm

package cpu

// machineLevels returns the levels this machine has, and the one that is fastest. Every
// arm64 has NEON.
func machineLevels() (available []level, fastest level) {
	return []level{levelGo, levelNEON}, levelNEON
}

// machineKernels returns the kernels of a level that the machine has.
func machineKernels(l level) kernels {
	k := portableKernels()
	if l == levelGo {
		return k
	}
	k.widen = widenBlocks(widenNEON)
	k.panels = panelKernels{tilesNEON(), packF32NEON, packBF16NEON, finishNEON}
	k.useElementsNEON()
	return k
}
