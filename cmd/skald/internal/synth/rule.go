package synth

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skald/host/checkpoint"
)

// rule says how the numbers of one tensor are drawn: uniformly around mean with the
// standard deviation std, through exp where log is set; numbers lo to hi are then
// multiplied by factor.
type rule struct {
	mean, std float64
	log       bool
	lo, hi    int
	factor    float64
}

// linear keeps the mean square of what a matrix or a convolution is applied to,
// times gain squared.
func linear(spec checkpoint.Spec, gain float64) rule {
	fanIn := 1
	for _, n := range spec.Shape[1:] {
		fanIn *= n
	}
	return rule{std: gain / math.Sqrt(float64(fanIn))}
}

// ruleFor chooses gains that keep activations of order one through every stage, so
// that a song can be made: logits have a real spread, latents stay near unit variance,
// and the samples are neither silent nor clipped.
func ruleFor(spec checkpoint.Spec, c checkpoint.Config) (rule, error) {
	switch spec.Component {
	case "language_model":
		return languageModelRule(spec, c.LanguageModel), nil
	case "rvq_depth_decoder":
		return depthDecoderRule(spec), nil
	case "condition_encoder":
		return conditionEncoderRule(spec), nil
	case "transformer":
		return transformerRule(spec), nil
	case "vocoder":
		return vocoderRule(spec, c.Vocoder)
	}
	return rule{}, fmt.Errorf("no way to fill %s of component %s", spec.Name, spec.Component)
}

func languageModelRule(spec checkpoint.Spec, m checkpoint.LanguageModel) rule {
	switch {
	case hasSuffix(spec.Name, "q_norm.weight", "k_norm.weight"):
		return rule{mean: 1.25, std: 0.2}
	case hasSuffix(spec.Name, "norm.weight"):
		return rule{mean: 1, std: 0.2}
	case spec.Name == "model.embed_tokens.weight":
		return rule{std: 0.5}
	case spec.Name == "lm_head.weight":
		r := linear(spec, 2.2)
		// The end token stays possible but rare, so that songs have some length.
		r.lo, r.hi, r.factor = m.AudioEndID*m.HiddenSize, (m.AudioEndID+1)*m.HiddenSize, 0.6
		return r
	case hasSuffix(spec.Name, "o_proj.weight", "down_proj.weight"):
		return linear(spec, 1.3)
	}
	return linear(spec, 1)
}

func depthDecoderRule(spec checkpoint.Spec) rule {
	switch {
	case hasSuffix(spec.Name, "norm.weight"):
		return rule{mean: 1, std: 0.2}
	case strings.Contains(spec.Name, "embedding"):
		return rule{std: 0.5}
	case strings.HasPrefix(spec.Name, "audio_heads"):
		return linear(spec, 2)
	case hasSuffix(spec.Name, "to_out.weight", "down_proj.weight"):
		return linear(spec, 1.3)
	}
	return linear(spec, 1.2)
}

func conditionEncoderRule(spec checkpoint.Spec) rule {
	switch spec.Name {
	case "layer_weight_logits":
		return rule{std: 0.7}
	case "layer_scale":
		return rule{mean: 1.3}
	case "proj.bias":
		return rule{std: 0.2}
	}
	return linear(spec, 1.3)
}

func transformerRule(spec checkpoint.Spec) rule {
	switch {
	case spec.Name == "time_proj.weight":
		return rule{std: 1.5}
	case strings.Contains(spec.Name, ".norm") && hasSuffix(spec.Name, "weight"):
		return rule{mean: 1, std: 0.2}
	case hasSuffix(spec.Name, "bias"):
		return rule{std: 0.1}
	case hasSuffix(spec.Name, "process_conv.weight"):
		return linear(spec, 0.3)
	case spec.Name == "proj_out.weight":
		return linear(spec, 0.25)
	case hasSuffix(spec.Name, "to_q.weight", "to_k.weight"):
		return linear(spec, 1.25)
	case hasSuffix(spec.Name, "to_out.0.weight", "ff_out.weight", "linear_1.weight"):
		return linear(spec, 1.4)
	}
	return linear(spec, 1)
}

var upsampler = regexp.MustCompile(`^blocks\.(\d+)\.conv_t1\.weight_g$`)

// vocoderRule fills weight-normed convolutions: any direction will do, and the length
// sets the gain.
func vocoderRule(spec checkpoint.Spec, v checkpoint.Vocoder) (rule, error) {
	length := func(gain float64) rule { return rule{mean: gain, std: 0.15 * gain} }
	switch {
	case hasSuffix(spec.Name, "alpha"):
		// Slopes of either sign: snake must not assume positive ones.
		return rule{std: 0.4, log: true, lo: 0, hi: 1, factor: -0.7}, nil
	case hasSuffix(spec.Name, "bias"):
		return rule{std: 0.05}, nil
	case hasSuffix(spec.Name, "weight_v"):
		return rule{std: 0.5}, nil
	case spec.Name == "dec_in_proj.weight":
		return linear(spec, 1), nil
	case spec.Name == "conv_out.weight_g":
		return rule{mean: outputGain}, nil
	case hasSuffix(spec.Name, "conv1.weight_g"):
		return length(0.7), nil
	case hasSuffix(spec.Name, "conv2.weight_g"):
		return length(0.5), nil
	}
	if m := upsampler.FindStringSubmatch(spec.Name); m != nil {
		block, err := strconv.Atoi(m[1])
		if err != nil || block >= len(v.UpsamplingRatios) {
			return rule{}, fmt.Errorf("%s is not a block of %v", spec.Name, v.UpsamplingRatios)
		}
		// A sample hears 2 taps of 2*stride, of which each input channel has its own
		// length.
		return length(math.Sqrt(float64(v.UpsamplingRatios[block]) / 2)), nil
	}
	return length(0.9), nil
}

// outputGain is the gain of the last convolution. For latents of unit variance and any
// widths its input leaves samples at 2.9 to 4.3 times the gain (RMS before tanh, measured
// with the reference's vocoder at the widths of all shapes).
const outputGain = 0.06

func hasSuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(s, suffix) })
}
