package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// tokenBytes returns the bytes of every token of tiny.json by id.
func tokenBytes(t testing.TB) map[int32]string {
	var f file
	unmarshal(t, read(t, "tiny.json"), &struct {
		Model *struct{ Vocab *map[string]int64 }
	}{&struct{ Vocab *map[string]int64 }{&f.Model.Vocab}})
	value := map[rune]byte{}
	for b := range 256 {
		value[byteSymbol(byte(b))] = byte(b)
	}
	out := map[int32]string{}
	for token, id := range f.Model.Vocab {
		var bytes []byte
		for _, r := range token {
			bytes = append(bytes, value[r])
		}
		out[int32(id)] = string(bytes)
	}
	return out
}

// FuzzEncode asks that the tokens of a text spell the text, that plain text never
// yields an added token, and that the pieces cover the text.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "la la la", "don't I'LL", "\r\n \n\t x", "e\u0301\u0323", "각", "<|im_end|>", "a\xff", " \u3000!1²", "\u0301"} {
		f.Add(seed)
	}
	tok := parse(f, read(f, "tiny.json"))
	spelling := tokenBytes(f)
	f.Fuzz(func(t *testing.T, text string) {
		var spelt strings.Builder
		ids := tok.Encode(text)
		for _, id := range ids {
			s, ok := spelling[id]
			if !ok {
				t.Fatalf("id %d is not in the vocabulary", id)
			}
			spelt.WriteString(s)
		}
		want := nfc(strings.ToValidUTF8(text, "\uFFFD"))
		if spelt.String() != want {
			t.Errorf("the tokens spell %+q, want %+q", spelt.String(), want)
		}
		if nfc(want) != want {
			t.Errorf("normalizing %+q twice gives %+q", want, nfc(want))
		}
		if len(tok.FindSpecials(text)) == 0 && !slices.Equal(ids, tok.EncodeWithSpecials(text)) {
			t.Errorf("without an added token in it, %+q is encoded in two ways", text)
		}
	})
}

func FuzzParse(f *testing.F) {
	small := edit(f, func(t map[string]any) {
		m := at(t, "model")
		for token := range at(m, "vocab") {
			if utf8.RuneCountInString(token) > 1 && token != "in" {
				delete(at(m, "vocab"), token)
			}
		}
		m["merges"] = [][]string{{"i", "n"}}
		t["added_tokens"] = t["added_tokens"].([]any)[:2]
	})
	if _, err := Parse(small); err != nil {
		f.Fatal(err)
	}
	f.Add(small)
	f.Add(small[:len(small)/2])
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b",["a","b"]]},"normalizer":{"type":"NFC"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		for _, id := range tok.Encode("Hallo, wörld <|im_start|>\n") {
			if id < 0 || id > tok.MaxID() {
				t.Errorf("id %d, but MaxID is %d", id, tok.MaxID())
			}
		}
	})
}
