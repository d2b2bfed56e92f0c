package cpu

import (
	"skald/host/compute"
	"skald/host/rng"
)

// sampleScratch is the working memory of Sample, reused.
type sampleScratch struct {
	guided  []float32
	largest []float32 // a heap of the TopK largest
}

func (q *queue) Sample(s compute.Sample) {
	o := operands{op: "Sample"}
	o.size("Songs", s.Songs)
	if s.N <= 0 || s.TopK <= 0 {
		o.fail("N is %d, TopK is %d", s.N, s.TopK)
	}
	if s.OutColumn < 0 || s.OutColumn >= s.OutStride {
		o.fail("OutColumn is %d, OutStride is %d", s.OutColumn, s.OutStride)
	}
	logits := o.floats("Logits", s.Logits, 2*s.Songs*s.N)
	out := o.ints("Out", s.Out, max(0, (2*s.Songs-1)*s.OutStride+s.OutColumn+1))
	var exponentials []float32
	var seeds, iterations []int32
	if s.Exponentials != nil {
		draws := operands{op: "Sample", dtype: compute.F32}
		exponentials = draws.floats("Exponentials", s.Exponentials, s.Songs*s.N)
	} else {
		seeds = o.ints("Seeds", s.Seeds, 2*s.Songs)
		iterations = o.ints("Iterations", s.Iterations, s.Songs)
		o.size("Draw", s.Draw)
	}
	if q.err != nil {
		return
	}
	for song := range s.Songs {
		cond, uncond := logits[2*song*s.N:][:s.N], logits[(2*song+1)*s.N:][:s.N]
		draw := drawn{}
		if exponentials != nil {
			draw.exponentials = exponentials[song*s.N:][:s.N]
		} else {
			draw.seed = uint64(uint32(seeds[2*song])) | uint64(uint32(seeds[2*song+1]))<<32
			draw.iteration, draw.draw = uint32(iterations[song]), uint32(s.Draw)
		}
		index := q.sample.index(cond, uncond, &s, &draw)
		out[2*song*s.OutStride+s.OutColumn] = index
		out[(2*song+1)*s.OutStride+s.OutColumn] = index
	}
}

// drawn gives the exponential variates of one draw: recorded ones, or Philox's.
type drawn struct {
	exponentials    []float32
	seed            uint64
	iteration, draw uint32
}

func (d *drawn) at(candidate int) float32 {
	if d.exponentials != nil {
		return d.exponentials[candidate]
	}
	return rng.Exponential(d.seed, d.iteration, d.draw, uint32(candidate))
}

// index is the candidate drawn, or -1 when a logit is not finite.
func (m *sampleScratch) index(cond, uncond []float32, s *compute.Sample, draw *drawn) int32 {
	if firstNotFinite(cond) >= 0 || firstNotFinite(uncond) >= 0 {
		return -1
	}
	k := min(s.TopK, len(cond))
	threshold := negInf
	if s.Restrict {
		threshold = m.kthLargest(cond, k)
	}
	guided := grown(&m.guided, len(cond))
	for c, l := range cond {
		u := uncond[c]
		if l < threshold {
			guided[c] = negInf // takes no part from here on
			continue
		}
		guided[c] = u + float32((l-u)*s.Guidance)
	}
	threshold = m.kthLargest(guided, k)
	top := negInf
	for _, g := range guided {
		top = max(top, g)
	}
	// p is written over guided; a candidate left out has none.
	var total float32
	for c, g := range guided {
		if g < threshold || g == negInf {
			guided[c] = -1
			continue
		}
		e := exp(g - top)
		guided[c] = e
		total += e
	}
	index, best := int32(-1), float32(-1)
	for c, e := range guided {
		if e < 0 {
			continue
		}
		if ratio := e / total / draw.at(c); ratio > best {
			index, best = int32(c), ratio
		}
	}
	return index
}

// kthLargest is the k-th largest of x, counting equals. It keeps the k largest so
// far in a heap with the smallest of them at the root.
func (m *sampleScratch) kthLargest(x []float32, k int) float32 {
	heap := grown(&m.largest, k)
	copy(heap, x[:k])
	for i := k/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for _, v := range x[k:] {
		if v > heap[0] {
			heap[0] = v
			sink(heap, 0)
		}
	}
	return heap[0]
}

// sink moves heap[i] down to where no child is smaller.
func sink(heap []float32, i int) {
	v := heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1] < heap[child] {
			child++
		}
		if heap[child] >= v {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = v
}
