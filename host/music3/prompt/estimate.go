package prompt

import (
	"strings"
	"time"
	"unicode"
)

// The pace of singing: syllables a second, and what a section without words takes. They
// are common values of popular music, a rule of thumb; the model keeps its own time.
const (
	slowSyllables = 2.0
	fastSyllables = 4.5
	shortSection  = 5 * time.Second
	longSection   = sectionSeconds * time.Second
)

// Estimate guesses how long lyrics take to sing: by their syllables, and by their
// sections without words. The two durations are those of a fast and of a slow song. It
// is no promise, only a help to see that lyrics and length are worlds apart.
func Estimate(lyrics string) (shortest, longest time.Duration) {
	sung, sections := 0, 0
	silent := false // in a section that has no words yet
	separated, _ := separateTags(lyrics)
	for line := range strings.SplitSeq(separated, "\n") {
		if tags, rest := leadingTags(line); tags != "" && Blank(rest) {
			if silent {
				sections++
			}
			sections += strings.Count(tags, "[") - 1
			silent = true
			continue
		}
		if n := syllables(line); n > 0 {
			sung, silent = sung+n, false
		}
	}
	if silent {
		sections++
	}
	pace := func(rate float64) time.Duration { return time.Duration(float64(sung) / rate * float64(time.Second)) }
	return pace(fastSyllables) + time.Duration(sections)*shortSection,
		pace(slowSyllables) + time.Duration(sections)*longSection
}

// syllables counts groups of vowels, at least one a word; a character of the scripts
// that write a syllable in one counts as one.
func syllables(line string) int {
	n := 0
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		vowels, whole, after := 0, 0, false
		for _, r := range word {
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
				whole++
				after = false
				continue
			}
			vowel := isVowel(r)
			if vowel && !after {
				vowels++
			}
			after = vowel
		}
		n += max(vowels+whole, 1)
	}
	return n
}

const vowelLetters = "aeiouyàáâãäåæèéêëìíîïòóôõöøœùúûüýāēīōūąęőűаеёиоуыэюяіїєαεηιουωάέήίόύώ"

func isVowel(r rune) bool { return strings.ContainsRune(vowelLetters, unicode.ToLower(r)) }
