package prompt

import (
	"strings"
	"testing"
)

func TestUnknownTags(t *testing.T) {
	cases := []struct{ lyrics, want string }{
		{"[Verse]\nla\n[verse 2]\n[Chorus3]\n[ solo ]\n[pre-chorus #1]", ""},
		{"la [soft] la", "the section tag [soft]; it knows [intro], [verse], [pre-chorus],"},
		{"[Prechorus]", "the section tag [prechorus] (did you mean [pre-chorus]?); it"},
		{"[hook]\n[hook 2]\n[bb]", "the section tags [hook] and [bb]; it"},
		{"[a]\n[b]\n[c]\n[d]\n[e]\n[f]\n[g]", "the section tags [a], [b], [c], [d], [e] and 2 more; it"},
		{"[" + strings.Repeat("x", 100) + "]", "tag [" + strings.Repeat("x", 24) + "…]; it"},
		{"[a\nb]", `tag [a\nb]; it`},
		{"[start]", "tag [start]; it"},
	}
	for _, c := range cases {
		got := strings.Join(appendUnknownTags(nil, Normalise(c.lyrics)), "|")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: warning %q, want %q in it", c.lyrics, got, c.want)
		}
	}
}

func TestWarningsOfLines(t *testing.T) {
	lines := []int{1, 2, 3, 5, 8, 13, 21}
	for n, want := range []string{"", "line 1 is", "lines 1 and 2 is", "lines 1, 2 and 3 is", "", "", "lines 1, 2, 3, 5, 8 and 1 more is"} {
		got := strings.Join(appendLines(nil, lines[:n], "is dropped"), "|")
		if (n == 0) != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%d lines: %q, want %q in it", n, got, want)
		}
	}
}
