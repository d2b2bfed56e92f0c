package prompt

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lowerRange says that every stride-th character from lo to hi moves by delta.
type lowerRange struct{ lo, hi, stride, delta rune }

// lower is Python's str.lower: the full mapping of Unicode 16.0 without regard to
// language. (strings.ToLower maps each character alone: it knows no final sigma,
// makes one character of İ, and its Unicode version is the Go release's.)
func lower(s string) string {
	var out strings.Builder
	for i, r := range s {
		switch r {
		case 'İ':
			out.WriteString("i\u0307")
		case 'Σ':
			if finalSigma(s[:i], s[i+len("Σ"):]) {
				out.WriteRune('ς')
			} else {
				out.WriteRune('σ')
			}
		default:
			out.WriteRune(lowerRune(r))
		}
	}
	return out.String()
}

// lowerRune is the simple mapping of one character.
func lowerRune(r rune) rune {
	i := sort.Search(len(lowerRanges), func(i int) bool { return lowerRanges[i].hi >= r })
	if i == len(lowerRanges) {
		return r
	}
	if m := lowerRanges[i]; m.lo <= r && (r-m.lo)%m.stride == 0 {
		return r + m.delta
	}
	return r
}

// finalSigma tells whether a sigma between before and after ends a word: a cased
// letter stands before it and none behind it, where case-ignorable characters
// such as apostrophes and accents do not count (Unicode, Final_Sigma).
func finalSigma(before, after string) bool {
	cut := strings.TrimRightFunc(before, isCaseIgnorable)
	r, n := utf8.DecodeLastRuneInString(cut)
	if n == 0 || !unicode.Is(cased, r) {
		return false
	}
	r, n = utf8.DecodeRuneInString(strings.TrimLeftFunc(after, isCaseIgnorable))
	return n == 0 || !unicode.Is(cased, r)
}

func isCaseIgnorable(r rune) bool { return unicode.Is(caseIgnorable, r) }
