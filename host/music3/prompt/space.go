package prompt

import (
	"strings"
	"unicode/utf8"
)

// isSpace is Python's str.isspace, which is also \s of its regular expressions
// and what str.strip removes. Unlike unicode.IsSpace it has U+001C to U+001F.
func isSpace(r rune) bool {
	switch {
	case '\t' <= r && r <= '\r', 0x1C <= r && r <= ' ':
		return true
	case r < 0x80:
		return false
	}
	switch r {
	case 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000:
		return true
	}
	return 0x2000 <= r && r <= 0x200A
}

// Blank tells whether s holds nothing but white space, as Python defines it: a
// no-break space is blank, a zero-width space is not.
func Blank(s string) bool { return strings.TrimLeftFunc(s, isSpace) == "" }

// spaceLen returns the length in bytes of the white space at the start of s.
func spaceLen(s string) int { return len(s) - len(strings.TrimLeftFunc(s, isSpace)) }

// splitLines is Python's str.splitlines.
func splitLines(s string) []string {
	var lines []string
	start := 0
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		end := at
		at += n
		switch r {
		case '\r':
			if at < len(s) && s[at] == '\n' {
				at++
			}
		case '\n', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
		default:
			continue
		}
		lines = append(lines, s[start:end])
		start = at
	}
	if start < len(s) {
		lines = append(lines, s[start:])
	}
	return lines
}
