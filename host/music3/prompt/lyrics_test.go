package prompt

import (
	"slices"
	"testing"
	"unicode"
)

func TestSeparateTags(t *testing.T) {
	cases := []struct {
		in, want string
		cut      []int
	}{
		{"la la", "la la", nil},
		{"[verse]\nla", "[verse]\nla", nil},
		{"[verse] la", "[verse]\nla", []int{1}},
		{"x\r\n \t[verse][solo]\tla la \r\ny", "x\n[verse][solo]\nla la\ny", []int{2}},
		{"[verse]\u00a0[chorus] la", "[verse]\n[chorus]\nla", []int{1}},
		{"[verse] \u3000", "[verse] \u3000", nil},
		{"[verse\nla] x", "[verse\nla] x", nil},
		{"[] x", "[] x", nil},
		{"[a[b] x\n[verse] [", "[a[b]\nx\n[verse]\n[", []int{1, 2}},
	}
	for _, c := range cases {
		got, cut := separateTags(c.in)
		if got != c.want || !slices.Equal(cut, c.cut) {
			t.Errorf("separateTags(%q) = %q, %v, want %q, %v", c.in, got, cut, c.want, c.cut)
		}
		if lost := droppedLines(got); lost != nil {
			t.Errorf("of %q, lines %v still lose text", got, lost)
		}
	}
}

func TestDroppedLines(t *testing.T) {
	got := droppedLines("[verse] a\n[chorus]\r\n[solo]\t\u00a0\nb [bridge] c\n [x][y]z")
	if want := []int{1, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLower(t *testing.T) {
	for in, want := range map[string]string{
		"VERSE":            "verse",
		"İ":                "i\u0307",
		"ΌΣΟΣ":             "όσος",
		"Σ":                "σ",
		"ΑΣ'":              "ας'",
		"ΑΣ'Β":             "ασ'β",
		"Α\u0301Σ\u0301!":  "α\u0301ς\u0301!",
		"ẞǅK":              "ßǆk",
		"\U00010D50\uA7DC": "\U00010D70\u019B", // new in Unicode 16.0
	} {
		if got := lower(in); got != want {
			t.Errorf("lower(%q) = %q, want %q", in, got, want)
		}
	}
	known := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.ToLower(r)
		if want == r || r == 'İ' {
			continue
		}
		known++
		if got := lowerRune(r); got != want && unicode.Version <= "16.0.0" {
			t.Errorf("%U becomes %U, want %U", r, got, want)
		}
	}
	t.Logf("%d capital letters that Go knows", known)
}
