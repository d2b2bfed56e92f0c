package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/music3"
)

// Options say what to measure.
type Options struct {
	Config    checkpoint.Config // widths and layers of the whole model
	Layers    int               // layers to time, of the language model and of the flow transformer
	Stages    []string          // of StageNames
	Precision []music3.Precision
	Latents   []int // lengths of the flow transformer and the vocoder
	Rows      []int // of decode steps
	Threads   int
	Runs      int
	Budget    time.Duration // of each row
	Rates     Rates         // of this machine in this run; zero if not measured
	Level     string
}

// Rates are what the machine can do: bytes read a second, and FLOP a second by the type
// of the products.
type Rates struct {
	Read float64
	FLOP map[string]float64 // by dtype: fp32, bf16
}

// StageNames are the stages in order.
func StageNames() []string {
	return []string{"lm_decode", "lm_head", "lm_prefill", "depth_frame", "together", "dit", "vocoder", "cond"}
}

// Run measures the stages on a device and writes one row for each to out.
func Run(ctx context.Context, dev compute.Device, o Options, out io.Writer) error {
	for _, p := range o.Precision {
		for _, stage := range StageNames() {
			if !slices.Contains(o.Stages, stage) {
				continue
			}
			if err := o.stage(ctx, dev, p, stage, out); err != nil {
				return fmt.Errorf("%s in %s: %w", stage, p, err)
			}
		}
	}
	return nil
}

// stage measures one stage in all its sizes, with a model that is whole only in what
// the stage needs.
func (o Options) stage(ctx context.Context, dev compute.Device, p music3.Precision, stage string, out io.Writer) error {
	if stage == "together" {
		return o.together(ctx, dev, p, out)
	}
	m, err := o.model(ctx, dev, p, stage)
	if err != nil {
		return err
	}
	s, err := m.NewStages()
	if err != nil {
		return err
	}
	defer s.Close()
	dtype, size := "fp32", 4 // of the activations, and bytes of a weight
	if p == music3.BF16 {
		dtype = "bf16"
	}
	if p == music3.BF16 || stage != "dit" && stage != "vocoder" && stage != "cond" {
		size = 2 // the language side is stored in bfloat16
	}
	row := func(work string, timed, total int, flop, bytes float64, fixed, run func() error, err error) error {
		if err != nil {
			return err
		}
		r := Row{Peer: "skald", Stage: stage, Work: work, DType: dtype, Threads: o.Threads, LayersTimed: timed, LayersTotal: total, Level: o.Level}
		var constant timing
		if fixed != nil {
			if constant, err = o.measure(ctx, fixed); err != nil {
				return err
			}
		}
		t, err := o.measure(ctx, run)
		if err != nil {
			return err
		}
		t.fixed = constant.seconds
		r.fill(t, flop, bytes)
		o.shares(&r)
		return r.print(out)
	}

	c, n := o.Config, o.Layers
	lm := c.LanguageModel
	switch stage {
	case "lm_decode":
		const kv = 512
		for _, rows := range o.Rows {
			run, err := s.Decode(rows, kv)
			if err := row(fmt.Sprintf("rows=%d kv=%d", rows, kv), n, lm.Layers, decodeFLOP(lm, rows, kv), decodeBytes(lm, rows, kv, size), nil, run, err); err != nil {
				return err
			}
		}
	case "lm_head":
		ids := lm.AudioCodebookSize + 1
		run, err := s.Head(2)
		return row(fmt.Sprintf("rows=2 ids=%d", ids), 1, 1, headFLOP(lm, 2, ids), float64(ids*lm.HiddenSize*size), nil, run, err)
	case "lm_prefill":
		const tokens = 256
		run, err := s.Prefill(2, tokens)
		return row(fmt.Sprintf("rows=2 tokens=%d", tokens), n, lm.Layers, prefillFLOP(lm, 2, tokens), float64(lm.Layers)*lmLayer(lm)*float64(size), nil, run, err)
	case "depth_frame":
		d := c.DepthDecoder
		run, err := s.Depth(1)
		return row("rows=2", d.Layers, d.Layers, depthFLOP(d, 2), depthBytes(d, size), nil, run, err)
	case "dit":
		for _, latents := range o.Latents {
			for rows := 1; rows <= 2; rows++ {
				fixed, err := s.Flow(rows, latents, false)
				if err != nil {
					return err
				}
				run, err := s.Flow(rows, latents, true)
				if err := row(fmt.Sprintf("rows=%d L=%d", rows, latents), n, c.Transformer.Layers, flowFLOP(c.Transformer, rows, latents), flowBytes(c.Transformer, size), fixed, run, err); err != nil {
					return err
				}
			}
		}
	case "vocoder":
		for _, latents := range o.Latents {
			run, err := s.Vocoder(latents)
			if err := row(fmt.Sprintf("L=%d", latents), 1, 1, vocoderFLOP(c.Vocoder, latents), 0, nil, run, err); err != nil {
				return err
			}
		}
	case "cond":
		for _, frames := range []int{25, 200} {
			run, err := s.Condition(frames)
			if err := row(fmt.Sprintf("F=%d", frames), 1, 1, conditionFLOP(c.ConditionEncoder, frames), conditionBytes(c.ConditionEncoder, size), nil, run, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// shares compares a row with the machine's rates.
func (o Options) shares(r *Row) {
	if o.Rates.Read > 0 {
		r.OfMemory = digits(r.GBytesPerS*1e9/o.Rates.Read, 3)
	}
	if f := o.Rates.FLOP[r.DType]; f > 0 {
		r.OfArithmetic = digits(r.GFLOPs*1e9/f, 3)
	}
}

// model loads what a stage needs at its real widths, the rest as small as it can be.
func (o Options) model(ctx context.Context, dev compute.Device, p music3.Precision, stage string) (*music3.Model, error) {
	c := o.Config
	lm, depth, flow := &c.LanguageModel, &c.DepthDecoder, &c.Transformer
	lm.Layers, flow.Layers = 1, 1
	switch stage {
	case "lm_decode", "lm_prefill", "together":
		lm.Layers = o.Layers
	case "dit":
		flow.Layers = o.Layers
	}
	if stage != "depth_frame" && stage != "together" {
		depth.Layers, depth.IntermediateSize = 1, 8
	}
	if stage != "lm_decode" && stage != "lm_prefill" && stage != "together" {
		lm.IntermediateSize = 8
	}
	if stage != "dit" {
		flow.FFInnerDim = 8
	}
	if stage != "vocoder" {
		small := 1
		for range c.Vocoder.UpsamplingRatios {
			small *= 2
		}
		c.Vocoder.DecoderInputDim, c.Vocoder.DecoderHiddenDim = 8, small
	}
	lm.VocabSize, lm.AudioCodeOffset, lm.AudioEndID = lm.AudioCodebookSize+8, 4, 0 // only the codes are used
	stored := func(component string) checkpoint.DType {
		if component == "language_model" || component == "rvq_depth_decoder" {
			return checkpoint.BF16
		}
		return checkpoint.F32
	}
	return music3.Load(ctx, dev, newWeights(c, stored), c, p, nil)
}
