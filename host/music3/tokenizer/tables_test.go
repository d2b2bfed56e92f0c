package tokenizer

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The tables follow Unicode 16.0, Go another version; both agree on the characters
// that both know.
func TestClassesAgreeWithGo(t *testing.T) {
	known, younger := 0, 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := other
		switch {
		case r == '\r' || r == '\n':
			want = isLineBreak
		case unicode.IsLetter(r):
			want = isLetter
		case unicode.IsNumber(r):
			want = isNumber
		case unicode.Is(unicode.White_Space, r):
			want = isSpace
		case !unicode.In(r, unicode.M, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			if classify(r) != other {
				younger++
			}
			continue // not assigned in Go's version
		}
		known++
		if got := classify(r); got != want && (got != other || unicode.Version < "16.0.0") {
			t.Errorf("%U has class %d, want %d", r, got, want)
		}
	}
	t.Logf("%d characters compared; %d letters and numbers that Unicode %s does not know", known, younger, unicode.Version)
}

func TestNFCAgreesWithXText(t *testing.T) {
	var texts []string
	for _, d := range decompositions {
		whole, first, second := string(d.whole), string(d.first), ""
		if d.second != 0 {
			second = string(d.second)
		}
		texts = append(texts, whole, first+second, whole+"\u0323", first+"\u0334"+second, "a"+second+whole)
	}
	for _, c := range combiningClasses {
		for r := c.lo; r <= c.hi; r++ {
			m := string(r)
			texts = append(texts, m, "e"+m+"\u0334", "e"+m+"\u0345", "e\u0345"+m, "e\u0323"+m+"\u0301", "e\u0301"+m, m+m+"\u0301a")
		}
	}
	for r := rune(hangulS); r < hangulS+countS; r++ {
		texts = append(texts, string(r)+"\u11A8", norm.NFD.String(string(r)))
	}
	for _, text := range texts {
		if got, want := nfc(text), norm.NFC.String(text); got != want {
			t.Errorf("nfc(%+q) = %+q, want %+q", text, got, want)
		}
	}
	t.Logf("%d texts of %d decompositions, %d classes of marks and %d Hangul syllables", len(texts), len(decompositions), len(combiningClasses), countS)
}

// The normalizer of the reference knows Unicode 9.0: it reorders U+1DFB (9.0),
// but not U+1DF6 (10.0), and it does not compose U+105D2 U+0307 (16.0).
func TestNFCVersion(t *testing.T) {
	for text, want := range map[string]string{
		"a\u1DFB\u0334":        "a\u0334\u1DFB",
		"a\u1DF6\u0334":        "a\u1DF6\u0334",
		"\U000105D2\u0307":     "\U000105D2\u0307",
		"\U00011131\U00011127": "\U0001112E",
	} {
		if got := nfc(text); got != want {
			t.Errorf("nfc(%+q) = %+q, want %+q", text, got, want)
		}
	}
}

// Marks of one class keep their order, however many there are.
func TestNFCKeepsOrder(t *testing.T) {
	const n = 20
	mixed := strings.Repeat("\u0300\u0323\u0301\u0324\u0302\u0325", n)
	want := "x" + strings.Repeat("\u0323\u0324\u0325", n) + strings.Repeat("\u0300\u0301\u0302", n)
	if got := nfc("x" + mixed); got != want {
		t.Errorf("got %+q, want %+q", got, want)
	}
}
