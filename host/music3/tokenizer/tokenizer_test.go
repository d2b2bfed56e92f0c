package tokenizer

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpecials(t *testing.T) {
	tok := parse(t, read(t, "tiny.json"))
	text := "a<|im_end|>b<|im_end|><|im_start|><|unknown|>"
	start, ok := tok.SpecialID("<|im_start|>")
	if !ok || start != 1001 {
		t.Errorf("SpecialID = %d, %t, want 1001, true", start, ok)
	}
	if id, ok := tok.SpecialID("a"); ok {
		t.Errorf("\"a\" of the vocabulary is special id %d", id)
	}
	if got, want := tok.FindSpecials(text), []string{"<|im_end|>", "<|im_start|>"}; !slices.Equal(got, want) {
		t.Errorf("FindSpecials = %q, want %q", got, want)
	}
	for _, id := range tok.Encode(text) {
		if id >= 1000 {
			t.Errorf("Encode yields the added token %d", id)
		}
	}
	if ids := tok.EncodeWithSpecials(text); ids[1] != 1002 || ids[3] != 1002 || ids[4] != start {
		t.Errorf("EncodeWithSpecials = %v, want 1002 second and fourth, then %d", ids, start)
	}
	if tok.MaxID() != 1009 {
		t.Errorf("MaxID = %d, want 1009", tok.MaxID())
	}
	if ids := tok.Encode(""); len(ids) != 0 {
		t.Errorf("an empty text has the ids %v", ids)
	}
	if got, want := tok.Encode("a\xff\xfeb"), tok.Encode("a\uFFFDb"); !slices.Equal(got, want) {
		t.Errorf("invalid UTF-8 gives %v, want %v", got, want)
	}
}

// The longest of several added tokens that start at one place wins.
func TestLongestSpecial(t *testing.T) {
	tok := parse(t, edit(t, func(f map[string]any) {
		f["added_tokens"] = append(f["added_tokens"].([]any),
			map[string]any{"id": 1010, "content": "<|im_end|>!"}, map[string]any{"id": 1011, "content": "<|im"})
	}))
	got := tok.EncodeWithSpecials("<|im_end|><|im_end|>!<|im")
	if want := []int32{1002, 1010, 1011}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The pieces are separated by | here, as the Rust library cuts them.
func TestPieces(t *testing.T) {
	for _, want := range []string{
		"don|'t|dot| '|tis",
		"I|'ll|y|'LL|'ve|it|'re|d|'m|m|'d|x|'S|s|'ſ|s",
		"'x| '|x|'l|!'|r",
		"a|1|2|½|b| |3",
		" hello| world|  | !\n",
		"x|?!\r\n\n|  \n \n| | y",
		"\u00a0y|\u00a0|!|\u3000|\u3000z|\u0085",
		"e|\u0301x|\u200d👩|\t|\tx",
	} {
		text := strings.ReplaceAll(want, "|", "")
		var pieces []string
		for rest := text; rest != ""; {
			n := pieceLen(rest)
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if got := strings.Join(pieces, "|"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A text of one repeated character is one piece of a million bytes. Quadratic
// work on it would take hours.
func TestLongPieces(t *testing.T) {
	tok := parse(t, read(t, "qwen3.json.gz"))
	const size, limit = 1 << 20, 60 * time.Second
	for _, unit := range []string{"a", " ", "\n ", "!", "字", "e\u0301", "\u0301\u0323", "<|im"} {
		text := strings.Repeat(unit, size/len(unit))
		start := time.Now()
		n := len(tok.EncodeWithSpecials(text))
		spent := time.Since(start)
		t.Logf("1 MiB of %+q: %d tokens, %v", unit, n, spent.Round(time.Millisecond))
		if spent > limit {
			t.Errorf("1 MiB of %+q took %v, want less than %v", unit, spent, limit)
		}
	}
}

// Encode must not depend on what was encoded before.
func TestEncodeIsPure(t *testing.T) {
	tok := parse(t, read(t, "tiny.json"))
	first := tok.Encode("the rain in the street")
	tok.Encode(strings.Repeat("other ", 100))
	if again := tok.Encode("the rain in the street"); !reflect.DeepEqual(first, again) {
		t.Errorf("first %v, then %v", first, again)
	}
}
