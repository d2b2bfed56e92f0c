package audio

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestAppendSamplesBytes(t *testing.T) {
	left := []float32{0, 1, -1, 0.5, 2}
	right := []float32{float32(math.Copysign(0, -1)), 1.0 / 32767, -0.25, -1e-9, -2}
	for _, c := range []struct {
		encoding Encoding
		want     []byte
	}{
		{PCM16, []byte{
			0, 0, 0, 0,
			0xff, 0x7f, 1, 0,
			0x01, 0x80, 0x00, 0xe0, // -32767; -8191.75 to -8192
			0x00, 0x40, 0, 0, // 16383.5 to the even 16384
			0xff, 0x7f, 0x01, 0x80, // clamped
		}},
		{PCM24, []byte{
			0, 0, 0, 0, 0, 0,
			0xff, 0xff, 0x7f, 0x00, 0x01, 0x00, // 256.008 to 256
			0x01, 0x00, 0x80, 0x00, 0x00, 0xe0,
			0x00, 0x00, 0x40, 0, 0, 0,
			0xff, 0xff, 0x7f, 0x01, 0x00, 0x80,
		}},
		{Float32, []byte{
			0, 0, 0, 0, 0, 0, 0, 0x80,
			0, 0, 0x80, 0x3f, 0x00, 0x01, 0x00, 0x38,
			0, 0, 0x80, 0xbf, 0, 0, 0x80, 0xbe,
			0, 0, 0x00, 0x3f, 0x5f, 0x70, 0x89, 0xb0,
			0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf,
		}},
	} {
		got, err := AppendSamples([]byte("before"), c.encoding, left, right)
		if err != nil {
			t.Fatal(err)
		}
		if want := append([]byte("before"), c.want...); !bytes.Equal(got, want) {
			t.Errorf("%v:\n got % x\nwant % x", c.encoding, got, want)
		}
	}
}

// TestQuantise compares with integer arithmetic on the exact float32 product, for
// every step and its ties.
func TestQuantise(t *testing.T) {
	n := 0
	check := func(e Encoding, scale float32, x float32) {
		p := float32(x * scale)
		want := int32(math.Floor(float64(p)))
		switch rest := float64(p) - float64(want); {
		case rest > 0.5, rest == 0.5 && want&1 != 0:
			want++
		}
		if got := encode(e, x); got != want {
			t.Fatalf("%v of %x (product %v) is %d, want %d", e, x, p, got, want)
		}
		n++
	}
	ties := 0
	for k := -32767; k < 32767; k++ {
		tie := float32((float64(k) + 0.5) / 32767)
		for _, x := range []float32{tie, math.Nextafter32(tie, 2), math.Nextafter32(tie, -2)} {
			check(PCM16, 32767, x)
			check(PCM24, 8388607, x)
			if p := float64(float32(x * 32767)); p-math.Floor(p) == 0.5 {
				ties++
			}
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 200000 {
		x := 2*r.Float32() - 1
		check(PCM16, 32767, x)
		check(PCM24, 8388607, x)
	}
	if ties == 0 {
		t.Error("no tie was examined")
	}
	t.Logf("%d samples, %d of them ties", n, ties)
}

// TestAppendSamplesSplit: a song in pieces has the bytes of the whole.
func TestAppendSamplesSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	left, right := noise(r, 1000), noise(r, 1000)
	for _, e := range []Encoding{PCM16, PCM24, Float32} {
		whole, err := AppendSamples(nil, e, left, right)
		if err != nil {
			t.Fatal(err)
		}
		var pieces []byte
		for lo := 0; lo < len(left); {
			hi := min(lo+1+r.IntN(100), len(left))
			if pieces, err = AppendSamples(pieces, e, left[lo:hi], right[lo:hi]); err != nil {
				t.Fatal(err)
			}
			lo = hi
		}
		if !bytes.Equal(whole, pieces) {
			t.Errorf("%v: the pieces differ from the whole", e)
		}
		if len(whole) != 1000*2*e.Bytes() {
			t.Errorf("%v: %d bytes", e, len(whole))
		}
	}
}

func TestFloat32RoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	x := noise(r, 5000)
	b, err := AppendSamples(nil, Float32, x)
	if err != nil {
		t.Fatal(err)
	}
	back := make([]float32, len(x))
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, back); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if x[i] != back[i] {
			t.Fatalf("sample %d: %x became %x", i, x[i], back[i])
		}
	}
}

func TestAppendSamplesErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name     string
		encoding Encoding
		channels [][]float32
		want     string
	}{
		{"NaN", PCM16, [][]float32{{0, 0, nan}, {0, nan, 0}}, "sample 1 of channel 1 is NaN"},
		{"infinity", Float32, [][]float32{{inf}}, "sample 0 of channel 0 is -Inf"},
		{"lengths", PCM24, [][]float32{{0, 0}, {0}}, "channel 1 has 1 samples, channel 0 has 2"},
		{"encoding", 0, [][]float32{{0}}, "unknown encoding Encoding(0)"},
	} {
		got, err := AppendSamples([]byte{1}, c.encoding, c.channels...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if !bytes.Equal(got, []byte{1}) {
			t.Errorf("%s: appended % x", c.name, got)
		}
	}
	if b, err := AppendSamples(nil, PCM16); err != nil || len(b) != 0 {
		t.Errorf("no channels: % x, %v", b, err)
	}
}

func noise(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}
