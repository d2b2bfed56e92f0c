package engine

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"skald/host/compute"
	"skald/host/music3"
	"skald/host/rng"
)

// How much of the frame loop a trace keeps, so that long songs stay small.
const (
	tracedHiddens    = 64 // iterations
	tracedLogits     = 8  // iterations
	tracedCandidates = 64 // per draw
)

// tracer collects the frame loop's numbers and hands out all tensors of a song under
// the names that docs/numerics.md lists.
type tracer struct {
	s     *singing
	calls sync.Mutex // one at a time: frames and windows overlap

	prefill, lmHidden, semanticLogits, depthHidden, depthLogits []float32
	codes                                                       []int32
	candIDs                                                     []int32
	candProbs, candVariates                                     []float32
	variates                                                    [][]float32 // of the current iteration, by code; torch only
}

func newTracer(s *singing) *tracer {
	return &tracer{s: s, variates: make([][]float32, s.e.model.Config.DepthDecoder.Codebooks)}
}

func (t *tracer) observer() *music3.Observer {
	c := t.s.e.model.Config
	keep := func(dst *[]float32, iteration, limit int, v []float32) {
		if iteration < limit {
			*dst = append(*dst, v...)
		}
	}
	return &music3.Observer{
		Prefill: func(h []float32) { t.prefill = append(t.prefill, h...) },
		Semantic: func(i int, hidden, logits []float32) {
			keep(&t.lmHidden, i, tracedHiddens, hidden)
			keep(&t.semanticLogits, i, tracedLogits, logits)
			n := c.LanguageModel.AudioCodebookSize
			t.candidates(i, 0, logits, true, func(id int) int32 {
				if id == n {
					return int32(c.LanguageModel.AudioEndID)
				}
				return int32(c.LanguageModel.AudioCodeOffset + id)
			})
		},
		Depth: func(i, code int, hidden, logits []float32) {
			keep(&t.depthHidden, i, tracedLogits, hidden)
			keep(&t.depthLogits, i, tracedLogits, logits)
			t.candidates(i, code, logits, false, func(id int) int32 { return int32(id) })
		},
		Variates: func(i, code int, q []float32) {
			if i < tracedLogits {
				t.variates[code] = append(t.variates[code][:0], q...)
			}
		},
		Codes: func(i int, codes []int32) { t.codes = append(t.codes, codes...) },
	}
}

// candidates notes what one draw could give: ids, their probabilities and variates.
func (t *tracer) candidates(iteration, code int, logits []float32, restrict bool, name func(int) int32) {
	if iteration >= tracedLogits {
		return
	}
	n := len(logits) / 2
	ids, probs := music3.Candidates(logits[:n], logits[n:], restrict)
	found := make([]candidate, 0, tracedCandidates)
	for k, id := range ids {
		c := candidate{id: name(id), p: probs[k]}
		if t.s.torch != nil {
			c.q = t.variates[code][id]
		} else {
			c.q = rng.Exponential(t.s.r.Seed, uint32(iteration), uint32(code), uint32(id))
		}
		if c.p > 0 {
			found = append(found, c)
		}
	}
	// The end token's id may lie before the codes'.
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	for k := range tracedCandidates {
		c := candidate{id: -1}
		if k < len(found) {
			c = found[k]
		}
		t.candIDs, t.candProbs, t.candVariates = append(t.candIDs, c.id), append(t.candProbs, c.p), append(t.candVariates, c.q)
	}
}

// candidate is an id that a draw could give: its probability and its variate.
type candidate struct {
	id   int32
	p, q float32
}

// frames hands out what the frame loop left.
func (t *tracer) frames() error {
	s, c := t.s, t.s.e.model.Config
	books, hidden := c.DepthDecoder.Codebooks, c.LanguageModel.HiddenSize
	codes, audio := c.LanguageModel.AudioCodebookSize+1, c.DepthDecoder.AudioVocabSize
	dtype := s.e.model.Precision.Language()

	ids := append(append([]int32(nil), s.prompt.IDs...), s.prompt.Unconditional...)
	if err := t.ints("text_ids", ids, 2, len(s.prompt.IDs)); err != nil {
		return err
	}
	if err := t.ints("codes", t.codes, len(t.codes)/books, books); err != nil {
		return err
	}
	frames := make([]float32, s.song.Frames*books*hidden)
	for f := range s.song.Frames {
		if err := s.e.loop.Frame(s.voice, f, frames[f*books*hidden:(f+1)*books*hidden]); err != nil {
			return err
		}
	}
	whole := len(t.depthHidden) / ((books - 1) * 2 * hidden) // iterations with all draws
	draws := whole * books * tracedCandidates
	for _, x := range []struct {
		name  string
		v     []float32
		t     compute.DType
		shape []int
	}{
		{"prefill_hidden", t.prefill, dtype, []int{2, hidden}},
		{"lm_hidden", t.lmHidden, dtype, []int{len(t.lmHidden) / (2 * hidden), 2, hidden}},
		{"semantic_logits", t.semanticLogits[:whole*2*codes], dtype, []int{whole, 2, codes}},
		{"depth_hidden", t.depthHidden, dtype, []int{whole, books - 1, 2, hidden}},
		{"depth_logits", t.depthLogits, dtype, []int{whole, books - 1, 2, audio}},
		{"cand_probs", t.candProbs[:draws], compute.F32, []int{whole, books, tracedCandidates}},
		{"cand_exponentials", t.candVariates[:draws], compute.F32, []int{whole, books, tracedCandidates}},
		{"frame_hiddens", frames, dtype, []int{s.song.Frames, books * hidden}},
	} {
		if err := t.tensor(x.name, x.shape, x.v, x.t); err != nil {
			return err
		}
	}
	return t.ints("cand_ids", t.candIDs[:draws], whole, books, tracedCandidates)
}

func (t *tracer) waveform(samples [2][]float32) error {
	all := append(append([]float32(nil), samples[0]...), samples[1]...)
	return t.tensor("waveform", []int{2, len(samples[0])}, all, compute.F32)
}

func (t *tracer) ints(name string, v []int32, shape ...int) error {
	return t.emit(TraceTensor{Name: name, Shape: shape, I32: v})
}

// tensor hands out a tensor in its own type; values of a BF16 one are bfloat16
// numbers already.
func (t *tracer) tensor(name string, shape []int, v []float32, d compute.DType) error {
	x := TraceTensor{Name: name, Shape: shape}
	if d != compute.BF16 {
		x.F32 = v
		return t.emit(x)
	}
	x.BF16 = make([]uint16, len(v))
	for i, f := range v {
		x.BF16[i] = uint16(math.Float32bits(f) >> 16)
	}
	return t.emit(x)
}

func (t *tracer) emit(x TraceTensor) error {
	t.calls.Lock()
	defer t.calls.Unlock()
	return t.s.r.Trace(x)
}
