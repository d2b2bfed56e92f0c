package music3

import (
	"math"
	"slices"
)

// Candidates returns the ids that a draw of the frame loop can give and their
// probabilities, from the logits of both rows, as Queue.Sample defines them. It is
// for traces: the songs themselves are drawn on the device.
func Candidates(cond, uncond []float32, restrict bool) (ids []int, probs []float32) {
	guided := make([]float32, len(cond))
	for i := range guided {
		guided[i] = uncond[i] + float32((cond[i]-uncond[i])*frameGuidance)
	}
	least := float32(math.Inf(-1))
	if restrict {
		least = kthLargest(cond)
	}
	var kept []float32
	for i, g := range guided {
		if cond[i] >= least {
			ids, kept = append(ids, i), append(kept, g)
		}
	}
	least = kthLargest(kept)
	n := 0
	for i, g := range kept {
		if g >= least {
			ids[n], kept[n] = ids[i], g
			n++
		}
	}
	return ids[:n], softmax(kept[:n])
}

func kthLargest(v []float32) float32 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)-min(frameTopK, len(s))]
}
