// Package music3 is MiniMax-Music3, written once against host/compute: from token
// ids to stereo samples. Its files read in the order of a song:
//
//	prompt/, tokenizer/  lyrics and caption -> token ids
//	language_model.go    Qwen3 decoder: one hidden state per frame
//	depth_decoder.go     seven residual codes and hidden states within a frame
//	frame_loop.go        the autoregressive loop over both, for many voices at once
//	condition.go         hidden states -> condition on the latent timeline
//	windows.go           the overlapping windows a song is cut into
//	flow.go, schedule.go noise + condition -> latents, by Euler steps
//	vocoder.go           latents -> samples
//
// Sizes and ids come from the checkpoint's configuration. What the reference
// pipeline fixes in code (guidance of the frame loop, top-k, window lengths) stands
// here as named constants.
//
// Algebra that does not change results beyond rounding is applied when weights are
// loaded: the head keeps only the rows that can be sampled, the 1x1 convolutions of
// the flow transformer are folded into their neighbours, weight norm is folded, the
// condition's share of the input projection is computed once per window, keys and
// values of depth positions are cached, and the unconditional prompt's common prefix
// is computed once for all songs.
package music3
