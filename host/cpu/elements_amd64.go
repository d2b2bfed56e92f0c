//go:build !noasm

package cpu

// useAVX2 takes the loops of elements_amd64.s, sums_amd64.s and round_amd64.s.
func (k *kernels) useElementsAVX2() {
	k.f32 = elements{
		silu: siluAVX2, tanh: tanhAVX2, swiGLU: swiGLUAVX2, snake: snakeSteps(snakeAVX2, false),
		add: addAVX2, scale: scaleAVX2, blend: blendAVX2, step: stepAVX2, guidedStep: guidedStepAVX2,
		turn: turnAVX2, rmsScale: rmsScaleAVX2, layerScale: layerScaleAVX2, round: k.f32.round,
	}
	k.bf16 = elements{
		silu: siluBF16AVX2, tanh: tanhBF16AVX2, swiGLU: swiGLUBF16AVX2, snake: snakeSteps(snakeBF16AVX2, true),
		add: addBF16AVX2, scale: scaleBF16AVX2, blend: blendBF16AVX2, step: stepBF16AVX2, guidedStep: guidedStepBF16AVX2,
		turn: turnBF16AVX2, rmsScale: rmsScaleBF16AVX2, layerScale: layerScaleBF16AVX2, round: roundAVX2,
	}
	k.sum, k.squares, k.axpy, k.firstNotFinite = sumAVX2, squaresAVX2, axpyAVX2, firstNotFiniteAVX2
	k.narrow, k.softmaxRow = narrowMost(narrowAVX2), softmaxAVX2
	k.cachedF32 = cachedKernels{scores1F32AVX2, scores4F32AVX2, mix1F32AVX2, mix4F32AVX2}
	k.cachedBF16 = cachedKernels{scores1BF16AVX2, scores4BF16AVX2, mix1BF16AVX2, mix4BF16AVX2}
}

func (k *kernels) useElementsAVX512() {
	k.f32 = elements{
		silu: siluAVX512, tanh: tanhAVX512, swiGLU: swiGLUAVX512, snake: snakeSteps(snakeAVX512, false),
		add: addAVX512, scale: scaleAVX512, blend: blendAVX512, step: stepAVX512, guidedStep: guidedStepAVX512,
		turn: turnAVX512, rmsScale: rmsScaleAVX512, layerScale: layerScaleAVX512, round: k.f32.round,
	}
	k.bf16 = elements{
		silu: siluBF16AVX512, tanh: tanhBF16AVX512, swiGLU: swiGLUBF16AVX512, snake: snakeSteps(snakeBF16AVX512, true),
		add: addBF16AVX512, scale: scaleBF16AVX512, blend: blendBF16AVX512, step: stepBF16AVX512, guidedStep: guidedStepBF16AVX512,
		turn: turnBF16AVX512, rmsScale: rmsScaleBF16AVX512, layerScale: layerScaleBF16AVX512, round: roundAVX512,
	}
	k.sum, k.squares, k.axpy, k.firstNotFinite = sumAVX512, squaresAVX512, axpyAVX512, firstNotFiniteAVX512
	k.narrow, k.softmaxRow = narrowMost(narrowAVX512), softmaxAVX512
	k.cachedF32 = cachedKernels{scores1F32AVX512, scores4F32AVX512, mix1F32AVX512, mix4F32AVX512}
	k.cachedBF16 = cachedKernels{scores1BF16AVX512, scores4BF16AVX512, mix1BF16AVX512, mix4BF16AVX512}
}
