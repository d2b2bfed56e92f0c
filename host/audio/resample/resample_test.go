package resample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pairs are conversions that people ask for, the steepest of the HTTP interface, and
// some with odd rates, whose filters are interpolated. Short tests, which also run on an
// emulator, take one of each kind.
func pairs() [][2]int {
	if testing.Short() {
		return [][2]int{{44100, 48000}, {44100, 16000}, {12345, 54321}}
	}
	return [][2]int{
		{44100, 48000}, {44100, 32000}, {44100, 24000}, {44100, 22050}, {44100, 16000}, {44100, 8000},
		{44100, 96000}, {44100, 88200}, {8000, 44100}, {96000, 8000}, {8000, 96000}, {48000, 44100},
		{44100, 44101}, {44100, 47999}, {44100, 11027}, {12345, 54321}, {95999, 8009},
	}
}

func convert(t testing.TB, from, to int, channels ...[]float32) [][]float32 {
	t.Helper()
	r, err := New(from, to, len(channels))
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]float32, len(channels))
	got, err := r.Process(channels...)
	if err != nil {
		t.Fatal(err)
	}
	for c := range out {
		out[c] = append(out[c], got[c]...)
	}
	for c, x := range r.Flush() {
		out[c] = append(out[c], x...)
	}
	return out
}

// tone is a sine of full scale. It fades in and out, so that it has no edges, whose
// spectrum would reach everywhere.
func tone(rate, n int, frequency float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(fade(float64(i)/float64(n)) * math.Sin(2*math.Pi*math.Mod(frequency*float64(i)/float64(rate), 1)))
	}
	return x
}

// fade is Nuttall's window with a continuous first derivative, for x from 0 to 1.
func fade(x float64) float64 {
	p := 2 * math.Pi * x
	return 0.355768 - 0.487396*math.Cos(p) + 0.144232*math.Cos(2*p) - 0.012604*math.Cos(3*p)
}

func decibels(ratio float64) float64 { return 20 * math.Log10(ratio) }

// TestAccuracy converts tones below the passband's edge and compares every sample with
// the same tone made at the other rate. The difference holds all that can be wrong:
// ripple, delay, images and aliases, interpolation, rounding.
func TestAccuracy(t *testing.T) {
	tones, worst := 0, math.Inf(-1)
	for _, p := range pairs() {
		from, to := p[0], p[1]
		low := float64(min(from, to))
		// Long enough that the window's spectrum is below -140 dB where the filter has
		// begun to fall. Its main lobe, 4/seconds to both sides, shall pass.
		seconds := 9000 / low
		edge := Passband*low/2 - 4/seconds
		for _, part := range []float64{0.01, 0.31, 0.77, 1} {
			n := int(seconds * float64(from))
			got := convert(t, from, to, tone(from, n, part*edge))[0]
			peak := 0.0
			for i, y := range got {
				// The input's window and phase at the time of this sample.
				at := float64(i) / float64(to)
				want := fade(at*float64(from)/float64(n)) * math.Sin(2*math.Pi*math.Mod(part*edge*at, 1))
				peak = max(peak, math.Abs(float64(y)-want))
			}
			worst = max(worst, decibels(peak))
			// Measured: -135.9 dB.
			if decibels(peak) > -135 {
				t.Errorf("%d to %d Hz, a tone of %.0f Hz: largest error %.1f dB of full scale", from, to, part*edge, decibels(peak))
			}
			tones++
		}
	}
	t.Logf("%d tones, largest error %.1f dB", tones, worst)
}

// TestStopband converts tones that the output rate cannot hold, and measures what comes
// out all the same.
func TestStopband(t *testing.T) {
	tones, worst := 0, math.Inf(-1)
	for _, p := range pairs() {
		from, to := p[0], p[1]
		if to >= from {
			continue
		}
		low, high := float64(to)/2, float64(from)/2
		for _, part := range []float64{0.01, 0.1, 0.5, 0.9} {
			frequency := low + part*(high-low)
			peak := 0.0
			for _, y := range convert(t, from, to, tone(from, from*2/5, frequency))[0] {
				peak = max(peak, math.Abs(float64(y)))
			}
			worst = max(worst, decibels(peak))
			if decibels(peak) > -137 { // measured: -137.7 dB
				t.Errorf("%d to %d Hz, a tone of %.0f Hz: %.1f dB come out", from, to, frequency, decibels(peak))
			}
			tones++
		}
	}
	t.Logf("%d tones, loudest remainder %.1f dB", tones, worst)
}

// TestResponse measures the stored filters themselves: their gain at many frequencies
// of the pass and the stop band.
func TestResponse(t *testing.T) {
	for _, p := range [][2]int{{160, 147}, {147, 160}, {320, 441}, {1, 12}, {12, 1}, {441, 80}} {
		f := design(p[0], p[1])
		// The bank, read phase by phase, is the filter at up times the input rate.
		nyquist := min(1, float64(p[0])/float64(p[1])) / 2
		gain := func(frequency float64) float64 { // in cycles per input sample
			re, im := 0.0, 0.0
			for phase := range f.phases {
				for k, h := range f.bank[phase*f.taps:][:f.taps] {
					sin, cos := math.Sincos(2 * math.Pi * frequency * (float64(phase)/float64(f.phases) - float64(k)))
					re += h * cos
					im += h * sin
				}
			}
			return math.Hypot(re, im) / float64(f.phases)
		}
		ripple, leak := 0.0, 0.0
		const points = 24
		for i := range points {
			ripple = max(ripple, math.Abs(gain(Passband*nyquist*float64(i)/(points-1))-1))
			// Up to the first image beyond the input rate, where there is one.
			beyond := min(2, float64(f.phases)/2)
			leak = max(leak, gain(nyquist+(beyond-nyquist)*float64(i)/points))
		}
		if decibels(ripple) > -138 || decibels(leak) > -138 {
			t.Errorf("%d/%d: ripple %.1f dB, stopband %.1f dB", p[0], p[1], decibels(ripple), decibels(leak))
		}
		t.Logf("%d/%d: %d taps for each of %d phases, ripple %.1f dB below 1, stopband %.1f dB", p[0], p[1], f.taps, f.phases, -decibels(ripple), decibels(leak))
	}
}

// TestLength counts samples against a definition that needs no care.
func TestLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	streams := 0
	for _, p := range append([][2]int{{44100, 44100}}, pairs()...) {
		for _, n := range []int{0, 1, 2, 146, 147, 148, 1000, r.IntN(3000)} {
			want := int(math.Ceil(float64(n) * float64(p[1]) / float64(p[0])))
			if got := Length(int64(n), p[0], p[1]); int(got) != want {
				t.Errorf("Length(%d, %d, %d) = %d, want %d", n, p[0], p[1], got, want)
			}
			if got := convert(t, p[0], p[1], make([]float32, n))[0]; len(got) != want {
				t.Errorf("%d samples from %d to %d Hz became %d, want %d", n, p[0], p[1], len(got), want)
			}
			streams++
		}
	}
	// The product does not fit 64 bits.
	if got := Length(3<<60, 96000, 8000); got != 1<<58 {
		t.Errorf("Length(3*2^60, 96000, 8000) = %d, want 2^58", got)
	}
	t.Logf("%d streams", streams)
}

// TestBlocks cuts streams into blocks at random; the output must not differ in a bit.
func TestBlocks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	blocks := 0
	for _, p := range append([][2]int{{48000, 48000}}, pairs()...) {
		left, right := noise(random, 4000), noise(random, 4000)
		whole := convert(t, p[0], p[1], left, right)
		r, err := New(p[0], p[1], 2)
		if err != nil {
			t.Fatal(err)
		}
		var got [2][]float32
		for at := 0; at < len(left); blocks++ {
			n := min(len(left)-at, random.IntN(1+random.IntN(700)))
			out, err := r.Process(left[at:at+n], right[at:at+n])
			if err != nil {
				t.Fatal(err)
			}
			for c := range got {
				got[c] = append(got[c], out[c]...)
			}
			at += n
		}
		for c, x := range r.Flush() {
			got[c] = append(got[c], x...)
		}
		for c := range got {
			if !slices.Equal(got[c], whole[c]) {
				t.Errorf("%d to %d Hz: channel %d differs when it comes in blocks", p[0], p[1], c)
			}
		}
		if held := len(r.input[0]); held > 2*r.filter.taps {
			t.Errorf("%d to %d Hz: %d samples are held at the end, with %d taps", p[0], p[1], held, r.filter.taps)
		}
	}
	t.Logf("%d blocks", blocks)
}

func TestSameRate(t *testing.T) {
	x := noise(rand.New(rand.NewPCG(5, 6)), 3000)
	if got := convert(t, 44100, 44100, x)[0]; !slices.Equal(got, x) {
		t.Error("samples changed though the rate did not")
	}
}

// TestMemory designs the largest filters there can be: with every phase stored, and
// interpolated.
func TestMemory(t *testing.T) {
	largest := 0
	for _, p := range [][2]int{{512, 12287}, {8000, 191999}, {24, 1}} {
		if d := gcd(p[0], p[1]); d != 1 {
			t.Fatalf("%v have a common divisor", p)
		}
		largest = max(largest, 8*len(design(p[0], p[1]).bank))
	}
	if largest > 20e6 {
		t.Errorf("the largest filter takes %d bytes", largest)
	}
	t.Logf("the largest of 3 filters takes %.1f MB", float64(largest)/1e6)
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		from, to, channels int
		want               string
	}{
		{7999, 44100, 2, "7999 Hz: expected 8000 to 192000"},
		{44100, 192001, 2, "192001 Hz: expected"},
		{44100, 0, 2, "0 Hz"},
		{44100, 48000, 0, "0 channels"},
	} {
		if _, err := New(c.from, c.to, c.channels); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%d, %d, %d): error %v, want one with %q", c.from, c.to, c.channels, err, c.want)
		}
	}
	r, err := New(44100, 48000, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Process(make([]float32, 3)); err == nil || !strings.Contains(err.Error(), "1 channels") {
		t.Errorf("too few channels: error %v", err)
	}
	if _, err := r.Process(make([]float32, 3), make([]float32, 4)); err == nil || !strings.Contains(err.Error(), "channel 1 has 4") {
		t.Errorf("channels of different lengths: error %v", err)
	}
	r.Flush()
	if _, err := r.Process(make([]float32, 3), make([]float32, 3)); err == nil || !strings.Contains(err.Error(), "after the end") {
		t.Errorf("samples after the end: error %v", err)
	}
	if rest := r.Flush(); len(rest[0]) != 0 {
		t.Errorf("a second Flush returned %d samples", len(rest[0]))
	}
}

func noise(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

func BenchmarkProcess(b *testing.B) {
	for _, to := range []int{48000, 16000, 47999} {
		b.Run(fmt.Sprint(to), func(b *testing.B) {
			x := noise(rand.New(rand.NewPCG(7, 8)), 44100)
			r, err := New(44100, to, 2)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := r.Process(x, x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "s/s")
		})
	}
}
