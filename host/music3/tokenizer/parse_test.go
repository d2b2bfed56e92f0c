package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// edit returns tiny.json after a change.
func edit(t testing.TB, change func(map[string]any)) []byte {
	t.Helper()
	var f map[string]any
	unmarshal(t, read(t, "tiny.json"), &f)
	change(f)
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// at walks to a member of nested objects and arrays.
func at(f any, path ...any) map[string]any {
	for _, p := range path {
		if name, ok := p.(string); ok {
			f = f.(map[string]any)[name]
		} else {
			f = f.([]any)[p.(int)]
		}
	}
	return f.(map[string]any)
}

func TestParseErrors(t *testing.T) {
	cases := []struct {
		name   string
		change func(f map[string]any)
		want   []string
	}{
		{"model type", func(f map[string]any) { at(f, "model")["type"] = "Unigram" }, []string{"Unigram", "BPE"}},
		{"no model", func(f map[string]any) { delete(f, "model") }, []string{"model type"}},
		{"dropout", func(f map[string]any) { at(f, "model")["dropout"] = 0.1 }, []string{"dropout"}},
		{"prefix", func(f map[string]any) { at(f, "model")["continuing_subword_prefix"] = "##" }, []string{"prefix", "##"}},
		{"ignore_merges", func(f map[string]any) { at(f, "model")["ignore_merges"] = true }, []string{"ignore_merges"}},
		{"normalizer", func(f map[string]any) { at(f, "normalizer")["type"] = "NFKC" }, []string{"normalizer", "NFKC", "NFC"}},
		{"no normalizer", func(f map[string]any) { f["normalizer"] = nil }, []string{"normalizer"}},
		{"post-processor", func(f map[string]any) { f["post_processor"] = map[string]any{"type": "TemplateProcessing"} }, []string{"post_processor"}},
		{"no pre-tokenizer", func(f map[string]any) { f["pre_tokenizer"] = nil }, []string{"pre_tokenizer"}},
		{"pattern", func(f map[string]any) {
			at(f, "pre_tokenizer", "pretokenizers", 0, "pattern")["Regex"] = `\s+`
		}, []string{`\\s+`, "supported"}},
		{"behaviour", func(f map[string]any) {
			at(f, "pre_tokenizer", "pretokenizers", 0)["behavior"] = "Removed"
		}, []string{"Removed"}},
		{"prefix space", func(f map[string]any) {
			at(f, "pre_tokenizer", "pretokenizers", 1)["add_prefix_space"] = true
		}, []string{"add_prefix_space"}},
		{"second pattern", func(f map[string]any) {
			delete(at(f, "pre_tokenizer", "pretokenizers", 1), "use_regex")
		}, []string{"use_regex"}},
		{"byte symbol", func(f map[string]any) { delete(at(f, "model", "vocab"), "Ġ") }, []string{"Ġ", "0x20"}},
		{"negative id", func(f map[string]any) { at(f, "model", "vocab")["a"] = -1 }, []string{`"a"`, "-1"}},
		{"huge id", func(f map[string]any) { at(f, "model", "vocab")["a"] = 1 << 31 }, []string{`"a"`, "2147483648"}},
		{"id of another kind", func(f map[string]any) { at(f, "model", "vocab")["a"] = "x" }, []string{"/model/vocab/a"}},
		{"duplicate id", func(f map[string]any) { at(f, "model", "vocab")["a"] = 1 }, []string{`"a"`, `"\""`, "id 1"}},
		{"merge of unknown", func(f map[string]any) { at(f, "model")["merges"] = [][]string{{"a", "nope"}} }, []string{"merge 0", `"nope"`}},
		{"merge into unknown", func(f map[string]any) { at(f, "model")["merges"] = []string{"~ ~"} }, []string{"merge 0", `"~~"`}},
		{"merge of three", func(f map[string]any) { at(f, "model")["merges"] = [][]string{{"a", "b", "c"}} }, []string{"3 tokens", "/model/merges/0"}},
		{"merge without space", func(f map[string]any) { at(f, "model")["merges"] = []string{"ab"} }, []string{`"ab"`, "/model/merges/0"}},
		{"merge with two spaces", func(f map[string]any) { at(f, "model")["merges"] = []string{"a b c"} }, []string{`"a b c"`}},
		{"merge of a number", func(f map[string]any) { at(f, "model")["merges"] = []int{1} }, []string{"/model/merges/0"}},
		{"empty added token", func(f map[string]any) { at(f, "added_tokens", 2)["content"] = "" }, []string{"added_tokens[2]"}},
		{"added id twice", func(f map[string]any) { at(f, "added_tokens", 2)["id"] = 1001 }, []string{"<|im_start|>", "<|im_end|>", "1001"}},
		{"added content twice", func(f map[string]any) { at(f, "added_tokens", 2)["content"] = "<|im_start|>" }, []string{"<|im_start|>", "1001", "1002"}},
		{"added id of the vocab", func(f map[string]any) { at(f, "added_tokens", 2)["id"] = 64 }, []string{"<|im_end|>", `"a"`, "64"}},
		{"added token of the vocab", func(f map[string]any) { at(f, "added_tokens", 2)["content"] = "a" }, []string{`"a"`, "1002", "64"}},
	}
	for _, c := range cases {
		_, err := Parse(edit(t, c.change))
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range append(c.want, "tokenizer.json") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q lacks %q", c.name, err, want)
			}
		}
	}
	for _, text := range []string{"", "{", "[]", `{"model":{"vocab":{"a":1,"a":2}}}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	t.Logf("%d faults", len(cases)+4)
}

// Older files write a merge as one string.
func TestMergesAsStrings(t *testing.T) {
	old := parse(t, edit(t, func(f map[string]any) {
		m := at(f, "model")
		for i, pair := range m["merges"].([]any) {
			m["merges"].([]any)[i] = pair.([]any)[0].(string) + " " + pair.([]any)[1].(string)
		}
	}))
	tok := parse(t, read(t, "tiny.json"))
	text := "the rain in the street"
	if got, want := old.Encode(text), tok.Encode(text); !slices.Equal(got, want) || len(want) == len(text) {
		t.Errorf("got %v, want %v", got, want)
	}
}
