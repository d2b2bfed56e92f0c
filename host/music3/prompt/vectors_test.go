package prompt

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skald/host/music3/tokenizer"
	"skald/host/refdata"
)

// golden holds prompts of the reference: text and ids of the tokenizer "tiny".
type golden struct {
	Vectors []struct {
		Category, Caption, Lyrics, Error, Prompt string
		IDs                                      []int32
	}
}

// TestGoldenPrompts compares whole prompts with the reference, byte for byte and id
// for id: on the copy in testdata, and on the reference data where it is.
func TestGoldenPrompts(t *testing.T) {
	t.Run("copy", func(t *testing.T) {
		var g golden
		readGzip(t, "golden.json.gz", &g)
		checkGolden(t, g)
	})
	t.Run("recorded", func(t *testing.T) {
		shared := refdata.Shared(t, "the recorded prompts, beyond the copy in testdata")
		var g golden
		readJSON(t, filepath.Join(shared, "golden", "prompts", "vectors.json"), &g)
		checkGolden(t, g)
	})
}

func checkGolden(t *testing.T, g golden) {
	tok := tiny(t)
	refused, plain := 0, 0
	for i, v := range g.Vectors {
		p, err := Build(tok, v.Caption, v.Lyrics, Reference, config)
		if v.Error == "blank" {
			refused++
			var field *FieldError
			if !errors.As(err, &field) {
				t.Errorf("%d %s: error is %v, want a *FieldError", i, v.Category, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d %s: %v", i, v.Category, err)
			continue
		}
		if p.Text != v.Prompt {
			t.Errorf("%d %s: caption %q, lyrics %q give\n%q, want\n%q", i, v.Category, v.Caption, v.Lyrics, p.Text, v.Prompt)
		}
		if got := tok.EncodeWithSpecials(p.Text); !slices.Equal(got, v.IDs) {
			t.Errorf("%d %s: %q has ids\n%v, want\n%v", i, v.Category, p.Text, got, v.IDs)
		}
		inside := Clean(v.Caption) + "\n" + Normalise(v.Lyrics)
		if len(tok.FindSpecials(inside)) > 0 {
			continue // the reference makes control tokens of them
		}
		plain++
		if !slices.Equal(p.IDs, v.IDs) {
			t.Errorf("%d %s: ids\n%v, want\n%v", i, v.Category, p.IDs, v.IDs)
		}
	}
	t.Logf("%d prompts, %d of them refused, %d without control tokens in the texts", len(g.Vectors), refused, plain)
}

// TestReferenceFunctions compares Clean and Normalise on random texts.
func TestReferenceFunctions(t *testing.T) {
	var v struct{ Clean, Normalise [][2]string }
	readGzip(t, "fuzz.json.gz", &v)
	for _, c := range v.Clean {
		if got := Clean(c[0]); got != c[1] {
			t.Errorf("Clean(%q) = %q, want %q", c[0], got, c[1])
		}
	}
	for _, c := range v.Normalise {
		if got := Normalise(c[0]); got != c[1] {
			t.Errorf("Normalise(%q) = %q, want %q", c[0], got, c[1])
		}
	}
	t.Logf("%d captions, %d lyrics", len(v.Clean), len(v.Normalise))
}

// TestRecordedErrors asks which texts the reference refuses, and how many tokens
// the others have.
func TestRecordedErrors(t *testing.T) {
	shared := refdata.Shared(t, "the texts that the reference refuses")
	var recorded struct {
		Base    struct{ Prompt, Lyrics string }
		Entries []struct {
			Name    string
			Change  map[string]json.RawMessage
			OK      bool
			Message string
			Tokens  int `json:"prompt_tokens"`
		}
	}
	readJSON(t, filepath.Join(shared, "golden", "tiny", "errors.json"), &recorded)
	examined := 0
	for _, e := range recorded.Entries {
		texts := map[string]string{"prompt": recorded.Base.Prompt, "lyrics": recorded.Base.Lyrics}
		ours := false
		for name, change := range e.Change {
			if _, ok := texts[name]; ok {
				ours = true
				texts[name] = textOf(t, change)
			}
		}
		if !ours {
			continue // about durations and sampling
		}
		examined++
		p, err := Build(tiny(t), texts["prompt"], texts["lyrics"], Reference, config)
		if (err == nil) != e.OK {
			t.Errorf("%s: error is %v, the reference's %q", e.Name, err, e.Message)
		}
		if err == nil && len(p.IDs) != e.Tokens {
			t.Errorf("%s: %d tokens, want %d", e.Name, len(p.IDs), e.Tokens)
		}
	}
	t.Logf("%d of %d entries concern the texts", examined, len(recorded.Entries))
}

// textOf reads a string or {"piece": string, "times": n}.
func textOf(t *testing.T, data json.RawMessage) string {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return s
	}
	var repeated struct {
		Piece string
		Times int
	}
	if err := json.Unmarshal(data, &repeated); err != nil {
		t.Fatal(err)
	}
	return strings.Repeat(repeated.Piece, repeated.Times)
}

// config belongs to the tokenizer "tiny".
var config = Config{CFGID: 1003, MaxTokens: 5000}

func tiny(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "tokenizer", "testdata", "tiny.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}

// readGzip reads a packed file of testdata, made by make.py there.
func readGzip(t *testing.T, name string, to any) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(unpacked).Decode(to); err != nil {
		t.Fatal(err)
	}
}
