//go:build !noasm

package cpu

// useElementsNEON takes the loops of elements_arm64.s, sums_arm64.s, round_arm64.s,
// softmax_arm64.s and cached_arm64.s.
func (k *kernels) useElementsNEON() {
	k.f32 = elements{
		silu: siluNEON, tanh: tanhNEON, swiGLU: swiGLUNEON, snake: snakeSteps(snakeNEON, false),
		add: addNEON, scale: scaleNEON, blend: blendNEON, step: stepNEON, guidedStep: guidedStepNEON,
		turn: turnNEON, rmsScale: rmsScaleNEON, layerScale: layerScaleNEON, round: k.f32.round,
	}
	k.bf16 = elements{
		silu: siluBF16NEON, tanh: tanhBF16NEON, swiGLU: swiGLUBF16NEON, snake: snakeSteps(snakeBF16NEON, true),
		add: addBF16NEON, scale: scaleBF16NEON, blend: blendBF16NEON, step: stepBF16NEON, guidedStep: guidedStepBF16NEON,
		turn: turnBF16NEON, rmsScale: rmsScaleBF16NEON, layerScale: layerScaleBF16NEON, round: roundNEON,
	}
	k.sum, k.squares, k.axpy, k.firstNotFinite = sumNEON, squaresNEON, axpyNEON, firstNotFiniteNEON
	k.narrow, k.softmaxRow = narrowMost(narrowNEON), softmaxNEON
	k.cachedF32 = cachedKernels{scores1F32NEON, scores4F32NEON, mix1F32NEON, mix4F32NEON}
	k.cachedBF16 = cachedKernels{scores1BF16NEON, scores4BF16NEON, mix1BF16NEON, mix4BF16NEON}
}
