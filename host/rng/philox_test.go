package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"
)

// TestPhiloxKnown holds the known answers of Random123 (kat_vectors).
func TestPhiloxKnown(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     uint64
		want    [4]uint32
	}{
		{[4]uint32{}, 0,
			[4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff,
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822,
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox4x32(c.key, c.counter); got != c.want {
			t.Errorf("counter %08x, key %016x: %08x, want %08x", c.counter, c.key, got, c.want)
		}
	}
}

// TestPhiloxPinned pins the draws themselves, so that a seed keeps its song. The
// values come from a separate implementation in numpy.
func TestPhiloxPinned(t *testing.T) {
	for _, c := range []struct {
		seed                       uint64
		iteration, draw, candidate uint32
		want                       uint32
	}{
		{0, 0, 0, 0, 0x3fdc41a0},
		{42, 3, 7, 1023, 0x3e4411e8},
		{math.MaxUint64, 9000, 0, 16384, 0x3d04a986},
		{1 << 33, 1, 2, 3, 0x3da10f2c},
	} {
		got := math.Float32bits(Exponential(c.seed, c.iteration, c.draw, c.candidate))
		if got != c.want {
			t.Errorf("%+v: %08x", c, got)
		}
	}
	for _, c := range []struct {
		seed   uint64
		window uint32
		want   []uint32
	}{
		{0, 0, []uint32{0xbe6d380a, 0xbefa227b, 0x3e5808cb, 0xbecda396, 0xbf1ea2ab, 0x3eff3653}},
		{42, 3, []uint32{0x3f776c8b, 0xbf9e6e7e, 0x3cf3d8f4, 0x3f21320e, 0xbf2b2503, 0x3f737568, 0x3e035bf8}},
		{1<<63 + 5, 88, []uint32{0xbd1388b7, 0x3e0d8265, 0xbf5ed1ee, 0x401e81ae, 0xbd77e7b6, 0x3eb14a6d, 0x3fae2681, 0x3f688eb0}},
	} {
		got := make([]float32, len(c.want))
		Normals(c.seed, c.window, got)
		for i, x := range got {
			if math.Float32bits(x) != c.want[i] {
				t.Errorf("seed %d, window %d, element %d: %08x, want %08x", c.seed, c.window, i, math.Float32bits(x), c.want[i])
			}
		}
	}

	many := make([]float32, 4000)
	for i := range many {
		many[i] = Exponential(7, uint32(i/8), uint32(i%8), uint32(i*37%1000))
	}
	checkDigest(t, "4000 exponentials", many, "de695f4f0546d18ace93093a739a51ec9dc6e6f683c1d9698ee9cdf7b311f7d1")
	many = make([]float32, 10000)
	Normals(7, 2, many)
	checkDigest(t, "10000 normals", many, "9bda35ded4fad50941a2aa0cd5b781f0f392c4f529b591f028e56152b8581288")
}

func checkDigest(t *testing.T, name string, x []float32, want string) {
	t.Helper()
	sum := sha256.New()
	if err := binary.Write(sum, binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("SHA-256 of %s is %s, want %s", name, got, want)
	}
}

// TestExponentialRange examines every uniform that can occur.
func TestExponentialRange(t *testing.T) {
	lowest, highest := float32(math.Inf(1)), float32(0)
	for k := range uint32(1 << 23) {
		u := openUniform(k<<9 | 511)
		if want := (float64(k) + 0.5) / (1 << 23); float64(u) != want {
			t.Fatalf("uniform of %d is %v, want exactly %v", k, u, want)
		}
		q := -log32(u)
		lowest, highest = min(lowest, q), max(highest, q)
	}
	t.Logf("%d uniforms: exponentials from %g to %g", 1<<23, lowest, highest)
	if !(lowest > 0) || !(highest < 17) {
		t.Errorf("exponentials range from %g to %g", lowest, highest)
	}
}

// TestNormalsSplit: an element does not depend on how many are asked for.
func TestNormalsSplit(t *testing.T) {
	all := make([]float32, 1003)
	Normals(11, 4, all)
	for n := range all {
		part := make([]float32, n)
		Normals(11, 4, part)
		if !slices.Equal(part, all[:n]) {
			t.Fatalf("the first %d elements differ", n)
		}
	}
	t.Logf("%d lengths", len(all))
}

// TestPhiloxDistinct: no two draws of a song share an output of the generator.
func TestPhiloxDistinct(t *testing.T) {
	seen := map[[4]uint32]bool{}
	add := func(seed uint64, c [4]uint32) {
		w := philox4x32(seed, c)
		if seen[w] {
			t.Fatalf("seed %d, counter %v repeats an output", seed, c)
		}
		seen[w] = true
	}
	for _, seed := range []uint64{0, 1, 1 << 32} {
		for a := range uint32(20) {
			for b := range uint32(20) {
				for c := range uint32(8) {
					add(seed, [4]uint32{a, b, c, kindToken})
				}
				add(seed, [4]uint32{a, b, 0, kindNoise})
			}
		}
	}
	t.Logf("%d outputs", len(seen))
}

func TestExponentialStatistics(t *testing.T) {
	var x []float64
	for i := range uint32(100) {
		for d := range uint32(8) {
			for c := range uint32(250) {
				x = append(x, float64(Exponential(2024, i, d, c)))
			}
		}
	}
	examine(t, x, 1, 1, func(x float64) float64 { return -math.Expm1(-x) })
}

func TestNormalsStatistics(t *testing.T) {
	var x []float64
	for w := range uint32(4) {
		part := make([]float32, 50000)
		Normals(2024, w, part)
		for _, v := range part {
			x = append(x, float64(v))
		}
	}
	examine(t, x, 0, 1, normalCDF)

	// Neighbours, the halves of a pair, and windows must not be correlated.
	for _, lag := range []int{1, 2, 3, 4, 8, 50000, 100000} {
		sum := 0.0
		for i := range len(x) - lag {
			sum += x[i] * x[i+lag]
		}
		n := float64(len(x) - lag)
		if z := sum / math.Sqrt(n); math.Abs(z) > 4 {
			t.Errorf("lag %d: correlation %g, that is %.1f standard errors", lag, sum/n, z)
		}
	}
}

func TestTorchStatistics(t *testing.T) {
	draw := make([]float32, 200000)
	x := make([]float64, len(draw))
	g := NewTorch(2024)
	g.Normal(draw)
	for i, v := range draw {
		x[i] = float64(v)
	}
	examine(t, x, 0, 1, normalCDF)
}

func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// examine checks mean and variance to four standard errors, and the distribution by
// Kolmogorov and Smirnov at the level of one in a thousand. The seeds are fixed, so
// the verdict is too.
func examine(t *testing.T, x []float64, mean, variance float64, cdf func(float64) float64) {
	t.Helper()
	n := float64(len(x))
	var m, v, v2 float64
	for _, x := range x {
		m += x / n
	}
	for _, x := range x {
		d := (x - mean) * (x - mean)
		v += d / n
		v2 += d * d / n
	}
	if z := (m - mean) / math.Sqrt(variance/n); math.Abs(z) > 4 {
		t.Errorf("mean %g is %.1f standard errors off", m, z)
	}
	if z := (v - variance) / math.Sqrt((v2-v*v)/n); math.Abs(z) > 4 {
		t.Errorf("variance %g is %.1f standard errors off", v, z)
	}
	x = slices.Sorted(slices.Values(x))
	worst := 0.0
	for i, x := range x {
		p := cdf(x)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	if d := worst * math.Sqrt(n); d > 1.95 {
		t.Errorf("Kolmogorov-Smirnov statistic %g", d)
	}
	t.Logf("%d values: mean %.4f, variance %.4f, Kolmogorov-Smirnov %.2f (limit 1.95)", len(x), m, v, worst*math.Sqrt(n))
}
