// Package nearest finds the name that was probably meant by one that does not exist, for
// the messages of commands and of the server.
package nearest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxGuess bounds the length of a name that is compared with the known ones: the
// distance takes time in proportion to both lengths, and no known name is so long.
const maxGuess = 40

// Name returns the known name that written was probably meant to be, or "". Case,
// hyphens and underscores do not count, so audioDuration is near audio_duration, and a
// beginning of three letters or more is one mistake. Of several equally near names the
// first wins.
func Name(written string, known []string) string {
	if len(written) > maxGuess {
		return ""
	}
	best, bestDistance := "", 0
	plain := plainName(written)
	for _, k := range known {
		name := plainName(k)
		d := Distance(plain, name)
		if len(plain) >= 3 && strings.HasPrefix(name, plain) {
			d = min(d, 1)
		}
		if best == "" || d < bestDistance {
			best, bestDistance = k, d
		}
	}
	// A third of the letters wrong is a misspelling, more is another word.
	if bestDistance > max(1, len(plain)/3) {
		return ""
	}
	return best
}

// Distance counts the letters to insert, drop or replace to make b of a; two neighbours
// that changed places are one mistake, once.
func Distance(a, b string) int {
	d := levenshtein.ComputeDistance(a, b)
	letters := []rune(a)
	for i := 1; i < len(letters) && d > 1; i++ {
		letters[i-1], letters[i] = letters[i], letters[i-1]
		d = min(d, 1+levenshtein.ComputeDistance(string(letters), b))
		letters[i-1], letters[i] = letters[i], letters[i-1]
	}
	return d
}

var plainReplacer = strings.NewReplacer("_", "", "-", "", " ", "")

func plainName(s string) string { return plainReplacer.Replace(strings.ToLower(s)) }
