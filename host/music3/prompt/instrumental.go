package prompt

import (
	"math"
	"strings"
)

// instrumentalClause asks for a song without singing.
const instrumentalClause = "Instrumental, no vocals."

// sectionSeconds is about how long a section of a song lasts, and maxSections
// how many the longest song (360 s) has.
const (
	sectionSeconds = 15
	maxSections    = 24
)

// Instrumental makes a request for music without singing out of a caption and
// a duration: the caption with a clause that says so, and for lyrics a sheet of
// section tags that fills the duration. The model has no switch for this, so it
// may still sing.
func Instrumental(caption string, seconds float64) (instructions, lyrics string) {
	return withClause(caption), sectionSheet(seconds)
}

func withClause(caption string) string {
	text := strings.TrimRightFunc(caption, isSpace)
	switch {
	case text == "":
		return instrumentalClause
	case strings.Contains(text, "\n"):
		return text + "\n" + instrumentalClause
	case strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?"):
		return text + " " + instrumentalClause
	}
	return text + ". " + instrumentalClause
}

// sectionSheet starts with [intro], ends with [outro] where there is time for
// both, and has [instrumental] and [solo] in turn between them.
func sectionSheet(seconds float64) string {
	n := 1
	if seconds > sectionSeconds { // false for NaN
		n = int(math.Min(math.Round(seconds/sectionSeconds), maxSections))
	}
	tags := make([]string, 0, n)
	for i := range n {
		switch {
		case n > 1 && i == 0:
			tags = append(tags, "[intro]")
		case n > 2 && i == n-1:
			tags = append(tags, "[outro]")
		case (i-1)%2 == 0 || n == 1:
			tags = append(tags, "[instrumental]")
		default:
			tags = append(tags, "[solo]")
		}
	}
	return strings.Join(tags, "\n")
}
