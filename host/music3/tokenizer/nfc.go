package tokenizer

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// classRange gives the canonical combining class of the characters lo to hi.
type classRange struct {
	lo, hi rune
	class  uint8
}

// decomposition says that a character is canonically equal to two others, or to
// one (second is 0).
type decomposition struct{ whole, first, second rune }

// Hangul syllables are composed by arithmetic (The Unicode Standard, 3.12).
const (
	hangulS, hangulL, hangulV, hangulT = 0xAC00, 0x1100, 0x1161, 0x11A7
	countL, countV, countT             = 19, 21, 28
	countS                             = countL * countV * countT
)

// nfc returns the canonical composition of s, which must be valid UTF-8. It knows
// the characters of Unicode 9.0, as the normalizer of the reference does; younger
// ones stay as they are.
//
// Only a character of mayChange and the one before the first of a row of them can
// change, so everything else is copied as it is.
func nfc(s string) string {
	var out strings.Builder
	copied := 0   // bytes of s already in out
	previous := 0 // where the character before at starts
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		if !couldChange(r) {
			previous = at
			at += n
			continue
		}
		end := at + n
		for end < len(s) {
			r, n := utf8.DecodeRuneInString(s[end:])
			if !couldChange(r) {
				break
			}
			end += n
		}
		out.WriteString(s[copied:previous])
		for _, r := range compose(decompose(s[previous:end])) {
			out.WriteRune(r.char)
		}
		copied, previous, at = end, end, end
	}
	if copied == 0 {
		return s
	}
	out.WriteString(s[copied:])
	return out.String()
}

func couldChange(r rune) bool { return r >= 0x300 && unicode.Is(mayChange, r) }

// mark is a character with its combining class, 0 for one that starts anew.
type mark struct {
	char  rune
	class uint8
}

// decompose returns the canonical decomposition of s in canonical order.
func decompose(s string) []mark {
	var out []mark
	for _, r := range s {
		out = appendParts(out, r)
	}
	for i := 0; i < len(out); {
		if out[i].class == 0 {
			i++
			continue
		}
		end := i
		for end < len(out) && out[end].class != 0 {
			end++
		}
		slices.SortStableFunc(out[i:end], func(a, b mark) int { return cmp.Compare(a.class, b.class) })
		i = end
	}
	return out
}

// appendParts appends the full canonical decomposition of r.
func appendParts(out []mark, r rune) []mark {
	if s := r - hangulS; 0 <= s && s < countS {
		out = append(out, mark{hangulL + s/(countV*countT), 0}, mark{hangulV + s%(countV*countT)/countT, 0})
		if t := s % countT; t > 0 {
			out = append(out, mark{hangulT + t, 0})
		}
		return out
	}
	i := sort.Search(len(decompositions), func(i int) bool { return decompositions[i].whole >= r })
	if i == len(decompositions) || decompositions[i].whole != r {
		return append(out, mark{r, combiningClass(r)})
	}
	out = appendParts(out, decompositions[i].first)
	if second := decompositions[i].second; second != 0 {
		out = appendParts(out, second)
	}
	return out
}

func combiningClass(r rune) uint8 {
	i := sort.Search(len(combiningClasses), func(i int) bool { return combiningClasses[i].hi >= r })
	if i == len(combiningClasses) || r < combiningClasses[i].lo {
		return 0
	}
	return combiningClasses[i].class
}

// compose joins marks with the starter before them where nothing between blocks
// it, in place.
func compose(marks []mark) []mark {
	out := marks[:0]
	starter := -1
	for _, m := range marks {
		if starter >= 0 {
			last := len(out) - 1
			if last == starter || out[last].class < m.class {
				if whole := composite(out[starter].char, m.char); whole != 0 {
					out[starter].char = whole
					continue
				}
			}
		}
		if m.class == 0 {
			starter = len(out)
		}
		out = append(out, m)
	}
	return out
}

// composite returns the character that is canonically equal to the two, or 0.
func composite(first, second rune) rune {
	if l, v := first-hangulL, second-hangulV; 0 <= l && l < countL && 0 <= v && v < countV {
		return hangulS + (l*countV+v)*countT
	}
	if s, t := first-hangulS, second-hangulT; 0 <= s && s < countS && s%countT == 0 && 0 < t && t < countT {
		return first + t
	}
	i := sort.Search(len(compositions), func(i int) bool {
		c := compositions[i]
		return c.first > first || c.first == first && c.second >= second
	})
	if i < len(compositions) && compositions[i].first == first && compositions[i].second == second {
		return compositions[i].whole
	}
	return 0
}
