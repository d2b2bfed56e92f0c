package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitPattern is the pattern that pieceLen implements. A checkpoint with another
// one is refused.
const splitPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// class is what the pattern distinguishes.
type class uint8

const (
	other       class = iota
	isLetter          // \p{L}
	isNumber          // \p{N}
	isSpace           // \s without the following two
	isLineBreak       // \r, \n
)

func classify(r rune) class {
	if r < utf8.RuneSelf {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return isLetter
		case '0' <= r && r <= '9':
			return isNumber
		case r == '\r' || r == '\n':
			return isLineBreak
		case r == ' ' || '\t' <= r && r <= '\f':
			return isSpace
		}
		return other
	}
	switch {
	case unicode.Is(letter, r):
		return isLetter
	case unicode.Is(number, r):
		return isNumber
	case unicode.Is(whiteSpace, r):
		return isSpace
	}
	return other
}

// next returns the class of the first character of s and its length in bytes; at
// the end of the text the length is 0.
func next(s string) (class, int) {
	r, n := utf8.DecodeRuneInString(s)
	return classify(r), n
}

// run returns the length in bytes of the leading characters of one class.
func run(s string, of class) int {
	at := 0
	for at < len(s) {
		c, n := next(s[at:])
		if c != of {
			break
		}
		at += n
	}
	return at
}

// pieceLen returns the length in bytes of the match of splitPattern at the start
// of s, which must be valid UTF-8 and not empty. The alternatives stand in the
// pattern's order; each character of the text is looked at a bounded number of
// times.
func pieceLen(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	first, n := next(s)
	second, _ := next(s[n:])
	switch {
	// [^\r\n\p{L}\p{N}]?\p{L}+
	case first == isLetter:
		return run(s, isLetter)
	case len(s) > n && second == isLetter && (first == other || first == isSpace):
		return n + run(s[n:], isLetter)
	// \p{N}
	case first == isNumber:
		return n
	// ' ?[^\s\p{L}\p{N}]+[\r\n]*'
	case first == other:
		n = run(s, other)
		return n + run(s[n:], isLineBreak)
	case len(s) > n && second == other && s[0] == ' ':
		n += run(s[n:], other)
		return n + run(s[n:], isLineBreak)
	}
	return whiteSpaceLen(s)
}

// whiteSpaceLen is the match of \s*[\r\n]+|\s+(?!\S)|\s+ at the start of s.
func whiteSpaceLen(s string) int {
	end, last, afterBreak := 0, 0, 0
	for end < len(s) {
		c, n := next(s[end:])
		if c != isSpace && c != isLineBreak {
			break
		}
		last = end
		end += n
		if c == isLineBreak {
			afterBreak = end
		}
	}
	switch {
	case afterBreak > 0:
		return afterBreak
	case end < len(s) && last > 0:
		return last // the last white space belongs to what follows it
	}
	return end
}

// contraction is the match of (?i:'s|'t|'re|'ve|'m|'ll|'d) at the start of s, or 0.
// The long s (U+017F) folds to s.
func contraction(s string) int {
	if s[0] != '\'' || len(s) < 2 {
		return 0
	}
	if strings.HasPrefix(s, "'ſ") {
		return len("'ſ")
	}
	// Setting bit 5 folds ASCII letters; no other character becomes one of these.
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	switch [2]byte{s[1] | 0x20, s[2] | 0x20} {
	case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
		return 3
	}
	return 0
}
