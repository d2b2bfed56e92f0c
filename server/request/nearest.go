package request

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxGuess bounds the length of a name that is compared with the known ones: the
// distance takes time in proportion to both lengths, and no known name is so long.
const maxGuess = 40

// nearest returns the known name that s was probably meant to be, or "". Case, hyphens
// and underscores do not count, so audioDuration is near audio_duration. Of several
// equally near names the first wins.
func nearest(s string, known []string) string {
	if len(s) > maxGuess {
		return ""
	}
	best, bestDistance := "", 0
	plain := plainName(s)
	for _, k := range known {
		d := levenshtein.ComputeDistance(plain, plainName(k))
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

var plainReplacer = strings.NewReplacer("_", "", "-", "", " ", "")

func plainName(s string) string { return plainReplacer.Replace(strings.ToLower(s)) }
