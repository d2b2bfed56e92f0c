package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"skald/host/refdata"
)

// vector is what the Rust library makes of a text, added tokens included.
type vector struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
}

// The tokenizers and vectors in testdata are made by make.py there. qwen3 is the
// published vocabulary of Qwen3, cut down to what its 200 texts need.
var vectorSets = []struct{ tokenizer, vectors string }{
	{"tiny.json", "tiny_vectors.json.gz"},
	{"qwen3.json.gz", "qwen3_vectors.json.gz"},
}

func TestVectors(t *testing.T) {
	for _, set := range vectorSets {
		tok := parse(t, read(t, set.tokenizer))
		var vectors []vector
		unmarshal(t, read(t, set.vectors), &vectors)
		plain, changed := 0, 0
		for i, v := range vectors {
			if got := tok.EncodeWithSpecials(v.Text); !slices.Equal(got, v.IDs) {
				t.Errorf("%s %d: %+q gives\n%v, want\n%v", set.vectors, i, clip(v.Text), got, v.IDs)
			}
			if nfc(v.Text) != v.Text {
				changed++
			}
			if len(tok.FindSpecials(v.Text)) > 0 {
				continue
			}
			plain++
			if got := tok.Encode(v.Text); !slices.Equal(got, v.IDs) {
				t.Errorf("%s %d: %+q gives as plain text\n%v, want\n%v", set.vectors, i, clip(v.Text), got, v.IDs)
			}
		}
		t.Logf("%s: %d texts, %d of them without added tokens, %d changed by NFC", set.vectors, len(vectors), plain, changed)
	}
}

// TestRecordedVectors asks whether the vectors in testdata are still those of the
// reference data.
func TestRecordedVectors(t *testing.T) {
	shared := refdata.Shared(t, "whether the copied tokenizer vectors are the recorded ones")
	data, err := os.ReadFile(filepath.Join(shared, "tokenizer", "qwen3_vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct{ Vectors []vector }
	unmarshal(t, data, &recorded)
	var copied []vector
	unmarshal(t, read(t, "qwen3_vectors.json.gz"), &copied)
	if !reflect.DeepEqual(copied, recorded.Vectors) {
		t.Error("testdata/qwen3_vectors.json.gz is not a copy of the recorded vectors: run make.py reduce")
	}
	t.Logf("%d vectors compared", len(copied))
}

func parse(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// read returns a file of testdata, unpacked.
func read(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if filepath.Ext(name) != ".gz" {
		return readAll(t, f)
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, unpacked)
}

func unmarshal(t testing.TB, data []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}

func clip(s string) string { return s[:min(len(s), 80)] }

func readAll(t testing.TB, r io.Reader) []byte {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
