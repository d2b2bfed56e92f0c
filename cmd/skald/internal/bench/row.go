package bench

import (
	"encoding/json"
	"io"
	"math"
	"slices"
)

// Row is one measurement. Seconds are the raw runs of the timed layers; the scaled ones
// are brought to all layers: fixed + (t - fixed) * total / timed, where the fixed part,
// which does not repeat with every layer, is timed by itself.
type Row struct {
	Peer          string  `json:"peer"`
	Stage         string  `json:"stage"`
	Work          string  `json:"work"`
	DType         string  `json:"dtype"`
	Threads       int     `json:"threads"`
	LayersTimed   int     `json:"layers_timed"`
	LayersTotal   int     `json:"layers_total"`
	SecondsMin    float64 `json:"seconds_min"`
	SecondsMedian float64 `json:"seconds_median"`
	ScaledSeconds float64 `json:"scaled_seconds"`
	ScaledMedian  float64 `json:"scaled_median"`
	GFLOPs        float64 `json:"gflops"`       // useful arithmetic over the scaled seconds
	GBytesPerS    float64 `json:"gbytes_per_s"` // useful bytes over the scaled seconds
	Runs          int     `json:"runs"`
	OtherCores    float64 `json:"other_cores"` // taken by other processes meanwhile
	Disturbed     bool    `json:"disturbed"`   // more of them than this measurement left over

	Bytes        int64   `json:"bytes,omitempty"`         // of a load: read; of songs: resident
	Level        string  `json:"level,omitempty"`         // the device's instruction set
	OfMemory     float64 `json:"of_memory,omitempty"`     // share of the read rate of this run
	FramesPerS   float64 `json:"frames_per_s,omitempty"`  // of all songs together
	OfOne        float64 `json:"of_one,omitempty"`        // that, over the first row's
	OfArithmetic float64 `json:"of_arithmetic,omitempty"` // share of the multiply rate of this run
}

// timing are the runs of one stage and, where it has one, of its fixed part.
type timing struct {
	seconds, fixed []float64
	otherCores     float64
	disturbed      bool
}

// fill computes the row's figures.
func (r *Row) fill(t timing, flop, bytes float64) {
	scale := func(x, fixed float64) float64 {
		return fixed + (x-fixed)*float64(r.LayersTotal)/float64(r.LayersTimed)
	}
	var fixedMin, fixedMedian float64
	if len(t.fixed) > 0 {
		fixedMin, fixedMedian = slices.Min(t.fixed), median(t.fixed)
	}
	lo, mid := slices.Min(t.seconds), median(t.seconds)
	scaled := scale(lo, fixedMin)
	r.SecondsMin, r.SecondsMedian = digits(lo, 6), digits(mid, 6)
	r.ScaledSeconds, r.ScaledMedian = digits(scaled, 6), digits(scale(mid, fixedMedian), 6)
	r.GFLOPs, r.GBytesPerS = digits(flop/scaled/1e9, 2), digits(bytes/scaled/1e9, 2)
	r.Runs, r.OtherCores, r.Disturbed = len(t.seconds), digits(t.otherCores, 2), t.disturbed
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func digits(x float64, n int) float64 {
	p := math.Pow(10, float64(n))
	return math.Round(x*p) / p
}

// print writes a row as one line.
func (r Row) print(w io.Writer) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
