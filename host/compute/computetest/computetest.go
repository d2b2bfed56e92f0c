// Package computetest checks that a device computes what package compute says.
//
// Every operation is compared with a plain reference in float64, written from the
// doc comments of compute and from nothing else. Results are checked against an
// interval: where each operation rounds exactly (additions, products, copies) it is a
// single number, so the device must agree to the bit; where float32 sums or
// functions like exp enter, the interval is as wide as their stated error makes it,
// carried through the later roundings. Nothing is wider than that: a store to BF16
// is checked to be the nearest, not merely close.
package computetest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"skald/host/compute"
)

// Run checks a device. open returns a new one each time it is called and arranges
// for its Close.
func Run(t *testing.T, open func(t *testing.T) compute.Device) {
	Digests(t, open)
}

// Digests runs what Run runs and returns, for each operation, a digest of all numbers
// that the device gave: two devices that must agree to the bit have equal digests.
func Digests(t *testing.T, open func(t *testing.T) compute.Device) map[string]string {
	digests := map[string]string{}
	for _, op := range []struct {
		name string
		test func(*suite)
	}{
		{"Memory", testMemory},
		{"Load", testLoad},
		{"Record", testRecord},
		{"Failure", testFailure},
		{"Misuse", testMisuse},
		{"Queues", testQueues},
		{"Linear", testLinear},
		{"EmbedSum", testEmbedSum},
		{"AppendKV", testAppendKV},
		{"CachedAttention", testCachedAttention},
		{"CopyBlock", testCopyBlock},
		{"Rope", testRope},
		{"FullAttention", testFullAttention},
		{"RMSNorm", testRMSNorm},
		{"LayerNorm", testLayerNorm},
		{"SwiGLU", testSwiGLU},
		{"ValueSiLU", testValueSiLU},
		{"SiLU", testSiLU},
		{"Tanh", testTanh},
		{"Add", testAdd},
		{"Snake", testSnake},
		{"Finite", testFinite},
		{"Conv1D", testConv1D},
		{"ConvTranspose1D", testConvTranspose1D},
		{"Sample", testSample},
		{"MixLayers", testMixLayers},
		{"NearestRows", testNearestRows},
		{"SplitChannels", testSplitChannels},
		{"Blend", testBlend},
		{"EulerStep", testEulerStep},
	} {
		t.Run(op.name, func(t *testing.T) {
			device := open(t)
			queue, err := device.NewQueue()
			if err != nil {
				t.Fatal(err)
			}
			defer queue.Close()
			seed := fnv.New64()
			seed.Write([]byte(op.name))
			s := &suite{T: t, device: device, queue: queue, rand: rand.New(rand.NewPCG(seed.Sum64(), 1)), hash: sha256.New()}
			op.test(s)
			digests[op.name] = fmt.Sprintf("%x", s.hash.Sum(nil))
			t.Logf("%s: %d cases, %d values, %d of them to the bit, worst error of the others %.2f of what is allowed", op.name, s.cases, s.values, s.exact, s.worst)
			if s.cases == 0 {
				t.Error("nothing was examined")
			}
		})
	}
	return digests
}

// suite is the test of one operation.
type suite struct {
	*testing.T
	device compute.Device
	queue  compute.Queue
	rand   *rand.Rand
	hash   hash.Hash

	cases, values int
	exact         int     // values that had to agree to the bit
	worst         float64 // error, as a share of what is allowed
}

// begin starts a case.
func (s *suite) begin() { s.cases++ }

// floats is the two types of activations.
var floats = []compute.DType{compute.F32, compute.BF16}

// normal draws n numbers that both float types hold exactly when d is BF16.
func (s *suite) normal(n int, std float64, d compute.DType) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(round(s.rand.NormFloat64()*std, d))
	}
	return v
}

// empty returns a new buffer of n numbers.
func (s *suite) empty(d compute.DType, n int) compute.Buffer {
	s.Helper()
	b, err := s.device.NewBuffer(d, n)
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// buffer returns a new buffer that holds v.
func (s *suite) buffer(d compute.DType, v []float32) compute.Buffer {
	s.Helper()
	b := s.empty(d, len(v))
	s.queue.Upload(b, v)
	return b
}

func (s *suite) ints(v ...int32) compute.Buffer {
	s.Helper()
	b := s.empty(compute.I32, len(v))
	s.queue.UploadInts(b, v)
	return b
}

// weight loads v, which d must hold exactly.
func (s *suite) weight(use compute.Use, d compute.DType, v []float32, shape ...int) compute.Weight {
	s.Helper()
	data := make([]byte, 0, 4*len(v))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return s.load(compute.Tensor{Name: "test", DType: compute.F32, Shape: shape, Data: data}, use, d)
}

func (s *suite) load(t compute.Tensor, use compute.Use, as compute.DType) compute.Weight {
	s.Helper()
	w, err := s.device.Load(t, use, as)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// read returns the contents of a buffer.
func (s *suite) read(b compute.Buffer) []float32 {
	s.Helper()
	v := make([]float32, b.Len())
	if err := s.queue.Download(v, b); err != nil {
		s.Fatal(err)
	}
	binary.Write(s.hash, binary.LittleEndian, v)
	return v
}

func (s *suite) readInts(b compute.Buffer) []int32 {
	s.Helper()
	v := make([]int32, b.Len())
	if err := s.queue.DownloadInts(v, b); err != nil {
		s.Fatal(err)
	}
	binary.Write(s.hash, binary.LittleEndian, v)
	return v
}

// check compares results with what is allowed, and stops the test at the first that
// is not.
func (s *suite) check(label string, got []float32, want []interval) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%s: %d results, want %d", label, len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if !w.holds(float64(g)) {
			s.Fatalf("%s: number %d of %d is %v, want %v", label, i, len(got), g, w)
		}
		if w.lo == w.hi {
			s.exact++
		} else if half := (w.hi - w.lo) / 2; w.steps() >= 8 { // in narrower ones the result's own rounding decides
			s.worst = max(s.worst, math.Abs(float64(g)-w.lo-half)/half)
		}
	}
	s.values += len(got)
}

// same asks for equality to the bit.
func (s *suite) same(label string, got, want []float32) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%s: %d results, want %d", label, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			s.Fatalf("%s: number %d of %d is %v (%08x), want %v (%08x)", label, i, len(got),
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
	s.values += len(got)
	s.exact += len(got)
}

// sameInts asks for equality.
func (s *suite) sameInts(label string, got, want []int32) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%s: %d results, want %d", label, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			s.Fatalf("%s: number %d of %d is %d, want %d", label, i, len(got), got[i], want[i])
		}
	}
	s.values += len(got)
	s.exact += len(got)
}
