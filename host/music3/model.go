package music3

import (
	"context"
	"fmt"
	"math"

	"skald/host/checkpoint"
	"skald/host/compute"
)

// Model is a checkpoint on a device.
type Model struct {
	Config    checkpoint.Config
	Precision Precision

	dev   compute.Device
	lm    *LanguageModel
	depth *DepthDecoder
	cond  *ConditionEncoder
	flow  *FlowTransformer
	voc   *Vocoder
}

// Source supplies the tensors of a model: a checkpoint, or numbers made up to measure
// speed.
type Source interface {
	Tensor(component, name string) (checkpoint.Tensor, bool)
}

// Load hands every weight that the configuration asks for to the device. A source that
// is a checkpoint must have been checked. Its tensors must stay valid for as long as the
// model is used. progress, which may be nil, is told of the bytes of each tensor as it is
// loaded.
func Load(ctx context.Context, dev compute.Device, src Source, c checkpoint.Config, p Precision, progress func(component string, bytes int64)) (*Model, error) {
	return load(&loader{ctx: ctx, dev: dev, src: src, progress: progress}, c, p)
}

func load(l *loader, c checkpoint.Config, p Precision) (*Model, error) {
	a := &allocator{dev: l.dev}
	if err := checkWindows(c.ConditionEncoder); err != nil {
		return nil, err
	}
	m := &Model{Config: c, Precision: p, dev: l.dev}
	m.lm = loadLanguageModel(l, a, c.LanguageModel, p.Language())
	m.depth = loadDepthDecoder(l, a, c.DepthDecoder, p.Language())
	m.cond = loadConditionEncoder(l, c.ConditionEncoder, p.Language())
	m.flow = loadFlowTransformer(l, a, c.Transformer, p.Acoustic())
	m.voc = loadVocoder(l, c.Vocoder, p.Acoustic())
	if l.err != nil {
		return nil, l.err
	}
	if a.err != nil {
		return nil, a.err
	}
	return m, nil
}

// SampleRate of the samples in Hz.
func (m *Model) SampleRate() int { return m.Config.Vocoder.SamplingRate }

// FrameRate is the number of frames a second.
func (m *Model) FrameRate() float64 {
	c := m.Config.ConditionEncoder
	return float64(c.InputSamplingRate) / float64(c.InputHopLength)
}

// Frames is the number of frames of a duration in seconds, rounded down as in the
// reference and bounded by MaxFrames.
func (m *Model) Frames(seconds float64) (int, error) {
	if !(seconds > 0) || math.IsInf(seconds, 1) {
		return 0, fmt.Errorf("a duration of %v s is not a positive, finite number", seconds)
	}
	n := seconds * m.FrameRate()
	if n >= MaxFrames {
		return MaxFrames, nil
	}
	if n < 1 {
		return 0, fmt.Errorf("a duration of %v s is shorter than one frame (%v s)", seconds, 1/m.FrameRate())
	}
	return int(n), nil
}
