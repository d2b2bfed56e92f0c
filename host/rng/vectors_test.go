package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"skald/host/refdata"
)

// vectors are draws that torch made.
type vectors struct {
	Torch string
	Seeds []seedVectors
	Log   struct{ X, Log []string }
	// Sin and cos of the same x.
	Sincos struct{ X, Sin, Cos []string }
}

type seedVectors struct {
	Seed          string
	First         []uint32          `json:"words_0_7"`
	At            map[string]uint32 `json:"words_at"`
	Exponential16 []string          `json:"exponential_16"`
	Multinomial   map[string]int
	Randn         map[string][]string
	RandnBF16     map[string][]string `json:"randn_bf16"`
	SongLike      []struct {
		Draw   string
		N      int
		Value  json.RawMessage
		SHA256 string
	} `json:"song_like"`
	SHA256F32  string `json:"randn_128x689_float32_sha256_of_float32_le"`
	SHA256BF16 string `json:"randn_128x689_bfloat16_sha256_of_float32_le"`
}

func TestTorchVectors(t *testing.T) {
	dir := refdata.Shared(t, "all of torch's vectors; TestTorchVectorsSmall examines a part")
	checkVectors(t, filepath.Join(dir, "golden", "torch_rng_vectors.json"))
}

func TestTorchVectorsSmall(t *testing.T) {
	checkVectors(t, filepath.Join("testdata", "torch_rng_vectors.json"))
}

func checkVectors(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	c := &counter{T: t}
	for _, s := range v.Seeds {
		c.seed(s)
	}
	for i, x := range fromHex(t, v.Log.X) {
		c.equal("log", v.Log.Log[i], log32(x))
	}
	for i, x := range fromHex(t, v.Sincos.X) {
		sin, cos := sincos32(x)
		c.equal("sin", v.Sincos.Sin[i], sin)
		c.equal("cos", v.Sincos.Cos[i], cos)
	}
	if c.values == 0 {
		t.Fatal("no vectors")
	}
	t.Logf("%d seeds: %d values and %d digests of torch %s equal", len(v.Seeds), c.values, c.digests, v.Torch)
}

// counter compares and counts.
type counter struct {
	*testing.T
	values, digests int
}

func (c *counter) seed(s seedVectors) {
	seed, err := strconv.ParseUint(s.Seed, 10, 64)
	if err != nil {
		signed, err := strconv.ParseInt(s.Seed, 10, 64)
		if err != nil {
			c.Fatal(err)
		}
		seed = uint64(signed)
	}
	fresh := func() *Torch { return NewTorch(seed) }

	g := fresh()
	words := make([]uint32, 20000)
	for i := range words {
		words[i] = g.engine.next()
	}
	for i, w := range s.First {
		c.word(s.Seed, i, w, words[i])
	}
	for at, w := range s.At {
		i, _ := strconv.Atoi(at)
		c.word(s.Seed, i, w, words[i])
	}

	exp := make([]float32, len(s.Exponential16))
	fresh().Exponentials(len(exp), []Span{{0, len(exp)}}, exp)
	c.equals("seed "+s.Seed+": exponential", s.Exponential16, exp)

	for n, want := range s.Multinomial {
		n, _ := strconv.Atoi(n)
		if got := multinomial(fresh(), n); got != want {
			c.Errorf("seed %s: multinomial of %d is %d, torch draws %d", s.Seed, n, got, want)
		}
		c.values++
	}
	for n, want := range s.Randn {
		c.equals("seed "+s.Seed+": randn "+n, want, normals(fresh(), len(want), false))
	}
	for n, want := range s.RandnBF16 {
		c.equals("seed "+s.Seed+": bfloat16 randn "+n, want, normals(fresh(), len(want), true))
	}

	g = fresh()
	for i, d := range s.SongLike {
		name := fmt.Sprintf("seed %s: song-like draw %d, %s of %d", s.Seed, i, d.Draw, d.N)
		if d.Draw == "multinomial" {
			var want int
			if err := json.Unmarshal(d.Value, &want); err != nil {
				c.Fatal(err)
			}
			if got := multinomial(g, d.N); got != want {
				c.Errorf("%s: %d, torch draws %d", name, got, want)
			}
			c.values++
			continue
		}
		var want []string
		if err := json.Unmarshal(d.Value, &want); err != nil {
			c.Fatal(err)
		}
		got := normals(g, d.N, d.Draw == "randn_bf16")
		if d.SHA256 != "" { // only the first and the last values are recorded
			c.digest(name, d.SHA256, got)
			got = append(got[:16:16], got[len(got)-16:]...)
		}
		c.equals(name, want, got)
	}

	if s.SHA256F32 != "" {
		c.digest("seed "+s.Seed+": randn 128x689", s.SHA256F32, normals(fresh(), 128*689, false))
		c.digest("seed "+s.Seed+": bfloat16 randn 128x689", s.SHA256BF16, normals(fresh(), 128*689, true))
	}
}

func (c *counter) word(seed string, i int, want, got uint32) {
	if got != want {
		c.Errorf("seed %s: output %d is %d, want %d", seed, i, got, want)
	}
	c.values++
}

func (c *counter) equals(name string, want []string, got []float32) {
	c.Helper()
	if len(want) != len(got) {
		c.Fatalf("%s: %d values, want %d", name, len(got), len(want))
	}
	for i := range want {
		c.equal(fmt.Sprintf("%s, value %d", name, i), want[i], got[i])
	}
}

func (c *counter) equal(name, want string, got float32) {
	c.Helper()
	if hex := fmt.Sprintf("%08x", math.Float32bits(got)); hex != want {
		c.Errorf("%s is %s, torch has %s", name, hex, want)
	}
	c.values++
}

func (c *counter) digest(name, want string, got []float32) {
	c.Helper()
	sum := sha256.New()
	if err := binary.Write(sum, binary.LittleEndian, got); err != nil {
		c.Fatal(err)
	}
	if hex := hex.EncodeToString(sum.Sum(nil)); hex != want {
		c.Errorf("%s: SHA-256 of the %d values is %s, torch has %s", name, len(got), hex, want)
	}
	c.digests++
}

func normals(g *Torch, n int, bf16 bool) []float32 {
	out := make([]float32, n)
	if bf16 {
		g.NormalBF16(out)
	} else {
		g.Normal(out)
	}
	return out
}

// multinomial is torch.multinomial(w, 1) with the weights of the vectors.
func multinomial(g *Torch, n int) int {
	q := make([]float32, n)
	g.Exponentials(n, []Span{{0, n}}, q)
	best, at := float32(-1), 0
	for i := range q {
		w := float32(0)
		if i*31%7 != 0 {
			w = float32(i*7919%101 + 1)
		}
		if w/q[i] > best {
			best, at = w/q[i], i
		}
	}
	return at
}

func fromHex(t *testing.T, in []string) []float32 {
	out := make([]float32, len(in))
	for i, s := range in {
		bits, err := strconv.ParseUint(s, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = math.Float32frombits(uint32(bits))
	}
	return out
}
