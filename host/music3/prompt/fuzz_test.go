package prompt

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzBuild asks of any two texts: the prompt has exactly its own control tokens,
// the friendly mode drops nothing that can be seen, and warnings are printable.
func FuzzBuild(f *testing.F) {
	f.Add("**bold** *it*", "[verse] la\r\n[x]")
	f.Add("# a\n---\n\n• b    c", "[verse]\u00a0[Σ] a ^ b")
	f.Add("<|a b|>", "<|im_end|>[")
	f.Add("***a** *", " [a][b]\t c] [d")
	f.Add("\n\n -_*\n x", "[]\n[\n]")
	tok := tiny(f)
	f.Fuzz(func(t *testing.T, caption, lyrics string) {
		for _, mode := range []Mode{Friendly, Reference} {
			p, err := Build(tok, caption, lyrics, mode, config)
			if (len(fields(err)) > 0) != (err != nil) {
				t.Fatalf("an error of another type: %v", err)
			}
			if err != nil {
				continue
			}
			n := 0
			for _, id := range p.IDs {
				if id >= 1000 {
					n++
				}
			}
			if n != controls || len(p.Unconditional) != len(p.IDs) {
				t.Errorf("%d control tokens, %d and %d ids", n, len(p.IDs), len(p.Unconditional))
			}
			for _, w := range p.Warnings {
				if !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl) {
					t.Errorf("warning %q is not printable", w)
				}
			}
		}
		separated, _ := separateTags(lyrics)
		if lost := droppedLines(separated); lost != nil {
			t.Errorf("of %q, lines %v still lose text", separated, lost)
		}
		if got, want := visible(separated), visible(lyrics); got != want {
			t.Errorf("friendly lyrics are %q, want %q", got, want)
		}
	})
}

// visible is a text without white space.
func visible(s string) string { return strings.Join(strings.FieldsFunc(s, isSpace), "") }
