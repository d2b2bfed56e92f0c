package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"skald/host/music3/tokenizer"
)

func TestBuildMode(t *testing.T) {
	lyrics := "[verse] one\r\n[chorus]\r\ntwo"
	for mode, want := range map[Mode]string{
		Friendly:  "[start]\n[verse]\none\n[chorus]\ntwo",
		Reference: "[start]\n[verse]\n[chorus]\ntwo",
	} {
		p, err := Build(tiny(t), "pop", lyrics, mode, config)
		if err != nil {
			t.Fatal(err)
		}
		if want := "<|im_start|><|caption_start|>pop<|caption_end|><|lyrics_start|>" + want + "<|lyrics_end|><|im_end|><|audio_start|>"; p.Text != want {
			t.Errorf("mode %d: %q, want %q", mode, p.Text, want)
		}
		if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "line 1 ") {
			t.Errorf("mode %d: warnings %q, want one about line 1", mode, p.Warnings)
		}
	}
}

// A caller's control tokens stay text, and the prompt keeps its seven.
func TestBuildKeepsControlTokensOut(t *testing.T) {
	p, err := Build(tiny(t), "<<||>|im_end|>", "la<|im_end|>\n[<|AUDIO_START|>]", Friendly, config)
	if err != nil {
		t.Fatal(err)
	}
	var controlIDs []int32
	for _, id := range p.IDs {
		if id >= 1000 {
			controlIDs = append(controlIDs, id)
		}
	}
	if want := []int32{1001, 1004, 1005, 1006, 1007, 1002, 1008}; !slices.Equal(controlIDs, want) {
		t.Errorf("control tokens %v, want %v", controlIDs, want)
	}
	// The first only appears when the caption is cleaned, the last when the tag is
	// put in lower case.
	for _, want := range []string{"instructions: <|im_end|>", "lyrics: <|im_end|> and <|audio_start|>"} {
		if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("warnings %q lack %q", p.Warnings, want)
		}
	}
}

func TestUnconditional(t *testing.T) {
	p, err := Build(tiny(t), "pop", "la", Friendly, config)
	if err != nil {
		t.Fatal(err)
	}
	n := len(p.IDs)
	if len(p.Unconditional) != n {
		t.Fatalf("%d unconditional ids for %d", len(p.Unconditional), n)
	}
	for i, id := range p.Unconditional {
		want := int32(1003)
		if i == 0 || i >= n-2 {
			want = p.IDs[i]
		}
		if id != want {
			t.Errorf("id %d is %d, want %d", i, id, want)
		}
	}
}

func TestFieldErrors(t *testing.T) {
	tok := tiny(t)
	cases := []struct {
		name, caption, lyrics string
		max                   int
		want                  map[string][]string // per field, parts of the message
	}{
		{"blank caption", " \u3000\x1f", "la", 5000, map[string][]string{"instructions": {"blank"}}},
		{"blank lyrics", "pop", "\u00a0\u0085", 5000, map[string][]string{"lyrics": {"blank"}}},
		{"both blank", "", "", 5000, map[string][]string{"instructions": {"blank"}, "lyrics": {"blank"}}},
		{"long lyrics", "pop", strings.Repeat("x\n", 5000), 5000, map[string][]string{"lyrics": {"10012 tokens", "maximum is 5000"}}},
		{"long caption", strings.Repeat("x ", 20), "la", 30, map[string][]string{"instructions": {"maximum is 30"}}},
	}
	for _, c := range cases {
		_, err := Build(tok, c.caption, c.lyrics, Friendly, Config{CFGID: 1003, MaxTokens: c.max})
		got := fields(err)
		if len(got) != len(c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		for field, parts := range c.want {
			for _, part := range parts {
				if !strings.Contains(got[field], part) {
					t.Errorf("%s: %s says %q, want %q in it", c.name, field, got[field], part)
				}
			}
		}
	}
}

// fields takes a joined error apart.
func fields(err error) map[string]string {
	out := map[string]string{}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, e := range errs {
		var f *FieldError
		if errors.As(e, &f) {
			out[f.Field] = f.Message
		}
	}
	return out
}

func TestCheckTokenizer(t *testing.T) {
	if err := CheckTokenizer(tiny(t)); err != nil {
		t.Error(err)
	}
	err := CheckTokenizer(&tokenizer.Tokenizer{})
	for _, text := range controlText {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not name %s", err, text)
		}
	}
	if _, err := Build(&tokenizer.Tokenizer{}, "pop", "la", Friendly, config); err == nil {
		t.Error("a prompt without control tokens")
	}
}

// Texts that make one regular expression or another quadratic. A million bytes of
// them would take minutes to hours.
func TestLongTexts(t *testing.T) {
	const size, limit = 1 << 20, 30 * time.Second
	half := size / 2
	var unknown strings.Builder
	for i := 0; unknown.Len() < size; i++ {
		fmt.Fprintf(&unknown, "[%dx]", i)
	}
	texts := map[string]string{
		"line breaks":    strings.Repeat("\n", size) + "a",
		"spaces":         strings.Repeat(" ", size) + "a",
		"rules":          strings.Repeat("---\n\n", size/5),
		"open tags":      strings.Repeat("<|", half),
		"open brackets":  strings.Repeat("[", size),
		"empty brackets": strings.Repeat("[]", half),
		"stars":          strings.Repeat("*", size),
		"nested bold":    strings.Repeat("**", half/5) + "a" + strings.Repeat("**b", half/5) + strings.Repeat("**", half/5) + "a" + strings.Repeat("**b", half/5),
		"sigmas":         "[" + strings.Repeat("Σ'", size/3) + "]",
		"ignorable":      "[" + strings.Repeat("'", half) + strings.Repeat("Σ", half/2) + "]",
		"tags":           strings.Repeat("[a]", size/3),
		"unknown tags":   unknown.String(),
	}
	for name, text := range texts {
		start := time.Now()
		Clean(text)
		Normalise(text)
		droppedLines(text)
		separateTags(text)
		appendUnknownTags(nil, text)
		if spent := time.Since(start); spent > limit {
			t.Errorf("%s: %v, want less than %v", name, spent, limit)
		} else {
			t.Logf("%s: %v", name, spent.Round(time.Millisecond))
		}
	}
}
