package flac

import (
	"math/bits"

	"github.com/mewkiz/flac/frame"
)

// analysis finds how to encode blocks. Its memory is reused from block to block.
type analysis struct {
	mid, side []int32
	window    []float64
	windowed  []float64
	residual  []int32
	sums      [][]uint64
}

// choice is one way to encode a signal.
type choice struct {
	header frame.SubHeader
	bits   int // of the whole subframe, estimated
}

// analyze chooses the channel assignment and the prediction of each subframe, in the
// order of the subframes. Samples have the given number of bits.
func (a *analysis) analyze(channels [][]int32, sampleBits int) (frame.Channels, []frame.SubHeader) {
	if len(channels) != 2 {
		headers := make([]frame.SubHeader, len(channels))
		for c, x := range channels {
			headers[c] = a.choose(x, sampleBits).header
		}
		return frame.Channels(len(channels) - 1), headers
	}
	a.mid, a.side = a.mid[:0], a.side[:0]
	for i, l := range channels[0] {
		r := channels[1][i]
		a.mid = append(a.mid, (l+r)>>1)
		a.side = append(a.side, l-r)
	}
	left, right := a.choose(channels[0], sampleBits), a.choose(channels[1], sampleBits)
	mid, side := a.choose(a.mid, sampleBits), a.choose(a.side, sampleBits+1)

	best := frame.ChannelsLR
	first, second := left, right
	for _, p := range []struct {
		channels      frame.Channels
		first, second choice
	}{
		{frame.ChannelsLeftSide, left, side},
		{frame.ChannelsSideRight, side, right},
		{frame.ChannelsMidSide, mid, side},
	} {
		if p.first.bits+p.second.bits < first.bits+second.bits {
			best, first, second = p.channels, p.first, p.second
		}
	}
	return best, []frame.SubHeader{first.header, second.header}
}

// subframeBits is the size of a subframe's own header.
const subframeBits = 8

// choose finds the cheapest way to encode one signal.
func (a *analysis) choose(x []int32, sampleBits int) choice {
	if constant(x) {
		return choice{frame.SubHeader{Pred: frame.PredConstant}, subframeBits + sampleBits}
	}
	best := choice{frame.SubHeader{Pred: frame.PredVerbatim}, subframeBits + len(x)*sampleBits}
	if order, ok := bestFixed(x); ok {
		header := frame.SubHeader{Pred: frame.PredFixed, Order: order}
		a.try(&best, x, header, frame.FixedCoeffs[order], sampleBits)
	}
	if p, ok := a.predictor(x, sampleBits); ok {
		header := frame.SubHeader{
			Pred: frame.PredFIR, Order: len(p.coefficients),
			CoeffPrec: coefficientBits, CoeffShift: int32(p.shift), Coeffs: p.coefficients,
		}
		a.try(&best, x, header, p.coefficients, sampleBits)
	}
	return best
}

// try replaces the best choice so far if prediction with the header is cheaper.
func (a *analysis) try(best *choice, x []int32, header frame.SubHeader, coefficients []int32, sampleBits int) {
	residual, ok := appendResidual(a.residual[:0], x, coefficients, uint(header.CoeffShift))
	a.residual = residual
	if !ok {
		return
	}
	rice, cost := a.partition(residual, len(x))
	cost += subframeBits + header.Order*sampleBits
	if header.Pred == frame.PredFIR {
		cost += 4 + 5 + header.Order*coefficientBits
	}
	if cost >= best.bits {
		return
	}
	header.RiceSubframe = rice
	for _, p := range rice.Partitions {
		if p.Param > mostRice1 {
			header.ResidualCodingMethod = frame.ResidualCodingMethodRice2
		}
	}
	*best = choice{header, cost}
}

func constant(x []int32) bool {
	for _, v := range x {
		if v != x[0] {
			return false
		}
	}
	return true
}

// bestFixed is the order, 0 to 4, of the polynomial predictor that leaves the smallest
// sum of magnitudes; false for fewer samples than make that a question.
func bestFixed(x []int32) (order int, ok bool) {
	const orders = 5
	if len(x) < orders {
		return 0, false
	}
	var sums [orders]uint64
	var last [orders - 1]int64 // differences at the previous sample
	for i, v := range x {
		d := int64(v)
		for o := range orders {
			if i >= orders-1 {
				sums[o] += uint64(max(d, -d))
			}
			if o < orders-1 {
				d, last[o] = d-last[o], d
			}
		}
	}
	for o, sum := range sums {
		if sum < sums[order] {
			order = o
		}
	}
	return order, true
}

// appendResidual appends what a predictor leaves of the samples behind its first ones.
// It reports false if something does not fit in 32 bits.
func appendResidual(dst, x, coefficients []int32, shift uint) ([]int32, bool) {
	var excess int64
	for i := len(coefficients); i < len(x); i++ {
		past := x[i-len(coefficients) : i]
		var sum int64
		for j, c := range coefficients {
			sum += int64(c) * int64(past[len(past)-1-j])
		}
		r := int64(x[i]) - sum>>shift
		excess |= r ^ int64(int32(r))
		dst = append(dst, int32(r))
	}
	return dst, excess == 0
}

// Rice codes: the largest parameters of both kinds of partition, which come in 4 and in
// 5 bits, and of which the value above is an escape.
const (
	mostRice1 = 14
	mostRice2 = 30
)

// mostPartitions is the largest partition order: the limit of FLAC's streamable subset.
const mostPartitions = 8

// partition divides the residual of a block of n samples into 2^k equal partitions, the
// first without the samples that the predictor begins with, and finds the best k and
// the Rice parameter of each. It returns the estimated size in bits as well.
func (a *analysis) partition(residual []int32, n int) (*frame.RiceSubframe, int) {
	warmup := n - len(residual)
	finest := min(mostPartitions, bits.TrailingZeros(uint(n)))
	for finest > 0 && n>>finest <= warmup {
		finest--
	}
	// Sums of the folded residuals of the finest partitions, then of pairs of them.
	for len(a.sums) <= finest {
		a.sums = append(a.sums, nil)
	}
	sums := a.sums[finest][:0]
	for p, at := 0, 0; p < 1<<finest; p++ {
		end := (p+1)*(n>>finest) - warmup
		var sum uint64
		for _, r := range residual[at:end] {
			sum += uint64(uint32(r<<1 ^ r>>31))
		}
		sums = append(sums, sum)
		at = end
	}
	a.sums[finest] = sums
	for k := finest - 1; k >= 0; k-- {
		a.sums[k] = a.sums[k][:0]
		for p := 0; p < len(a.sums[k+1]); p += 2 {
			a.sums[k] = append(a.sums[k], a.sums[k+1][p]+a.sums[k+1][p+1])
		}
	}

	order, cost := 0, int(^uint(0)>>1)
	for k := range finest + 1 {
		c := 2 + 4
		for p, sum := range a.sums[k] {
			count := n >> k
			if p == 0 {
				count -= warmup
			}
			_, b := riceParameter(sum, count)
			c += 4 + b
		}
		if c < cost {
			order, cost = k, c
		}
	}
	rice := &frame.RiceSubframe{PartOrder: order}
	for p, sum := range a.sums[order] {
		count := n >> order
		if p == 0 {
			count -= warmup
		}
		parameter, _ := riceParameter(sum, count)
		rice.Partitions = append(rice.Partitions, frame.RicePartition{Param: parameter})
	}
	return rice, cost
}

// riceParameter is the best parameter for count folded residuals of the given sum, and
// the bits they take if their low bits are evenly spread.
func riceParameter(sum uint64, count int) (parameter uint, cost int) {
	cost = int(^uint(0) >> 1)
	n := uint64(count)
	// The best is within one of the logarithm of the mean.
	guess := 0
	if n > 0 {
		guess = bits.Len64(sum / n)
	}
	for k := max(0, guess-2); k <= min(mostRice2, guess+1); k++ {
		low := n * (1<<k - 1) / 2 // the part of the sum that is in the low bits
		b := int(n)*(1+k) + int((sum-min(sum, low))>>k)
		if b < cost {
			parameter, cost = uint(k), b
		}
	}
	return parameter, cost
}
