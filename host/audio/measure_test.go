package audio

import (
	"math"
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	none := Stats{FirstNonFinite: -1, NonFiniteChannel: -1}
	with := func(change func(s *Stats)) Stats {
		s := none
		change(&s)
		return s
	}
	for _, c := range []struct {
		name     string
		channels [][]float32
		want     Stats
		err      string // "" for none
	}{
		{"no channels", nil,
			with(func(s *Stats) { s.Constant, s.Silent = true, true }), "no samples"},
		{"no samples", [][]float32{{}, {}},
			with(func(s *Stats) { s.Constant, s.Silent = true, true }), "no samples"},
		{"music", [][]float32{{0.5, -0.5, 0, 0}, {0.5, -1, 0, 0.5}},
			with(func(s *Stats) {
				s.Samples, s.RMS, s.Peak, s.LongestSilence = 4, math.Sqrt(2./8), 1, 1
			}), ""},
		{"mean", [][]float32{{0.25, 0.5}, {-0.5, -0.75}},
			with(func(s *Stats) {
				s.Samples, s.RMS, s.Peak, s.DC = 2, math.Sqrt(1.125/4), 0.75, -0.625
			}), ""},
		{"silence", [][]float32{{0, 0, 0}, {0, float32(math.Copysign(0, -1)), 0}},
			with(func(s *Stats) {
				s.Samples, s.LongestSilence, s.Constant, s.Silent = 3, 3, true, true
			}), "all 3 samples of every channel are zero"},
		{"constant", [][]float32{{1, 1}, {-1, -1}},
			with(func(s *Stats) {
				s.Samples, s.RMS, s.Peak, s.DC, s.Constant = 2, 1, 1, 1, true
			}), "all 2 samples of every channel are the same, peak 1"},
		{"one channel dead", [][]float32{{0, 0}, {0.5, -0.5}},
			with(func(s *Stats) { s.Samples, s.RMS, s.Peak = 2, math.Sqrt(0.125), 0.5 }), ""},
		{"not finite", [][]float32{{0.5, 0.5, inf, nan}, {0.5, nan, 0.5, 0.5}},
			with(func(s *Stats) {
				s.Samples, s.RMS, s.Peak, s.DC = 4, 0.5, 0.5, 0.5
				s.NonFinite, s.FirstNonFinite, s.NonFiniteChannel = 3, 1, 1
			}), "sample 1 of channel 1 is not finite, the first of 3"},
		{"only NaN", [][]float32{{nan, nan}},
			with(func(s *Stats) {
				s.Samples, s.NonFinite, s.FirstNonFinite, s.NonFiniteChannel = 2, 2, 0, 0
			}), "sample 0 of channel 0"},
		{"silent run", [][]float32{{0.9, 0, 0, 9e-4, -9e-4, 0, 1e-3, 0}, {0.9, 0, 0, 0, 0, 0.5, 0, 0}},
			with(func(s *Stats) {
				s.Samples, s.LongestSilence, s.Peak = 8, 4, float64(float32(0.9))
			}), ""},
	} {
		got := Measure(c.channels...)
		if c.name == "silent run" { // its sums are not the point
			got.RMS, got.DC = 0, 0
		}
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
		switch err := got.Err(); {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.err)
		}
	}
}

func TestMeasureSine(t *testing.T) {
	x := make([]float32, 44100)
	for i := range x {
		x[i] = float32(0.8 * math.Sin(2*math.Pi*440*float64(i)/44100))
	}
	s := Measure(x, x)
	if math.Abs(s.RMS-0.8/math.Sqrt2) > 1e-6 || math.Abs(s.Peak-0.8) > 1e-4 || math.Abs(s.DC) > 1e-6 {
		t.Errorf("%+v", s)
	}
}

func TestMeasurePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("channels of different lengths: no panic")
		}
	}()
	Measure([]float32{1, 2}, []float32{1})
}
