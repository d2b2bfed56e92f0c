package bench

import (
	"context"
	"fmt"
	"io"
	"slices"

	"skald/host/compute"
	"skald/host/music3"
)

// together measures the steps of the frame loop with so many songs in it as the rows say,
// two for each: language model, head, depth decoder, draws. One frame of every song comes
// of a step. OfOne compares the frames a second with those of the first row.
//
// What does not repeat with the layers of the language model is more than half of a step;
// it is found from a loop of one layer beside that of all timed ones.
func (o Options) together(ctx context.Context, dev compute.Device, p music3.Precision, out io.Writer) error {
	lm := o.Config.LanguageModel
	dtype, size := "fp32", 2 // the language side is stored in bfloat16
	if p == music3.BF16 {
		dtype = "bf16"
	}
	layers := min(max(o.Layers, 2), lm.Layers) // one alone tells nothing of the rest
	whole, err := o.steps(ctx, dev, p, layers)
	if err != nil {
		return err
	}
	least := make([]timing, len(whole))
	if layers < lm.Layers {
		if least, err = o.steps(ctx, dev, p, 1); err != nil {
			return err
		}
	}
	var one float64
	for i, t := range whole {
		songs := o.Rows[i] / 2
		r := Row{Peer: "skald", Stage: "together", Work: fmt.Sprintf("songs=%d", songs), DType: dtype, Threads: o.Threads,
			LayersTimed: layers, LayersTotal: lm.Layers, Level: o.Level}
		if less := least[i]; len(less.seconds) > 0 {
			without := func(all, single float64) float64 { return max(0, single-(all-single)/float64(layers-1)) }
			t.fixed = []float64{without(slices.Min(t.seconds), slices.Min(less.seconds)), without(median(t.seconds), median(less.seconds))}
			t.disturbed = t.disturbed || less.disturbed
		}
		const kv = 0 // short songs: the cache is little beside the weights
		r.fill(t, decodeFLOP(lm, 2*songs, kv)+depthFLOP(o.Config.DepthDecoder, 2*songs)+headFLOP(lm, 2*songs, lm.AudioCodebookSize+1),
			decodeBytes(lm, 2*songs, kv, size)+depthBytes(o.Config.DepthDecoder, size)+float64((lm.AudioCodebookSize+1)*lm.HiddenSize*size))
		r.FramesPerS = digits(float64(songs)/r.ScaledSeconds, 3)
		if one == 0 {
			one = r.FramesPerS
		}
		r.OfOne = digits(r.FramesPerS/one, 3)
		o.shares(&r)
		if err := r.print(out); err != nil {
			return err
		}
	}
	return nil
}

// steps times steps of the frame loop of a model with so many layers, for each of the rows.
func (o Options) steps(ctx context.Context, dev compute.Device, p music3.Precision, layers int) ([]timing, error) {
	o.Layers = layers
	m, err := o.model(ctx, dev, p, "together")
	if err != nil {
		return nil, err
	}
	var all []timing
	for _, rows := range o.Rows {
		t, err := o.stepsOf(ctx, m, rows/2)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (o Options) stepsOf(ctx context.Context, m *music3.Model, songs int) (timing, error) {
	const frames = 400
	prompt := []int32{5, 6, 6, 6, 6, 6, 6, 7}
	loop, err := m.NewFrameLoop(songs, 2*songs*(frames+64))
	if err != nil {
		return timing{}, err
	}
	defer loop.Close()
	voices := make([]*music3.Voice, songs)
	defer func() {
		for _, v := range voices {
			if v != nil {
				loop.Retire(v)
				v.Release()
			}
		}
	}()
	return o.measure(ctx, func() error {
		for i, v := range voices {
			if v != nil && v.End() == music3.Singing {
				continue
			}
			if v != nil { // at its end, once in many steps
				loop.Retire(v)
				v.Release()
			}
			v = &music3.Voice{MaxFrames: frames, Seed: uint64(i)}
			voices[i] = v
			if err := loop.Start(v, prompt, prompt); err != nil {
				return err
			}
			for done := false; !done; {
				if done, err = loop.Prefill(v, prompt); err != nil {
					return err
				}
			}
		}
		if err := loop.Step(voices); err != nil {
			return err
		}
		return loop.Sync()
	})
}
