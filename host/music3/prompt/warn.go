package prompt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// knownTags are the section tags that the model was trained on.
var knownTags = []string{"intro", "verse", "pre-chorus", "chorus", "bridge", "instrumental", "solo", "outro"}

// A warning names at most maxNamed lines or tags, and a tag by at most
// maxTagRunes characters.
const (
	maxNamed    = 5
	maxTagRunes = 24
)

// appendLines warns about text behind section tags.
func appendLines(warnings []string, lines []int, fate string) []string {
	if len(lines) == 0 {
		return warnings
	}
	numbers := make([]string, len(lines))
	for i, n := range lines {
		numbers[i] = strconv.Itoa(n)
	}
	word := "line"
	if len(lines) > 1 {
		word = "lines"
	}
	return append(warnings, fmt.Sprintf("lyrics: text behind the section tag on %s %s %s; a section tag needs a line of its own",
		word, list(numbers), fate))
}

// appendUnknownTags warns about tags of normalised lyrics that the model does not
// know.
func appendUnknownTags(warnings []string, normalised string) []string {
	var unknown []string
	seen := map[string]bool{}
	text := strings.TrimPrefix(normalised, "[start]\n")
	for {
		_, tag, after, ok := cutTag(text)
		if !ok {
			break
		}
		text = after
		base := baseTag(tag)
		if seen[base] || slices.Contains(knownTags, base) {
			continue
		}
		seen[base] = true
		if len(unknown) < maxNamed {
			tag = quoteTag(tag) + suggestion(base)
		}
		unknown = append(unknown, tag)
	}
	if unknown == nil {
		return warnings
	}
	word := "tag"
	if len(unknown) > 1 {
		word = "tags"
	}
	return append(warnings, fmt.Sprintf("lyrics: the model does not know the section %s %s; it knows [%s]",
		word, list(unknown), strings.Join(knownTags, "], [")))
}

// appendControls warns about control tokens that stand in a text.
func appendControls(warnings []string, field string, tokens []string) []string {
	if len(tokens) == 0 {
		return warnings
	}
	return append(warnings, fmt.Sprintf("%s: %s has no effect as a control token and is read as plain text", field, list(tokens)))
}

// baseTag is a tag without its number: "verse" for "verse 2".
func baseTag(tag string) string {
	tag = strings.TrimFunc(tag, isSpace)
	if base := strings.TrimRight(tag, "0123456789"); base != tag {
		return strings.TrimRight(base, " #")
	}
	return tag
}

func quoteTag(tag string) string {
	if utf8.RuneCountInString(tag) > maxTagRunes {
		tag = string([]rune(tag)[:maxTagRunes]) + "…"
	}
	quoted := strconv.Quote(tag)
	return "[" + quoted[1:len(quoted)-1] + "]"
}

// suggestion names the known tag that a tag was probably meant to be: one that
// differs in at most a third of its letters.
func suggestion(tag string) string {
	if utf8.RuneCountInString(tag) > maxTagRunes {
		return ""
	}
	for _, known := range knownTags {
		if levenshtein.ComputeDistance(tag, known) <= len(known)/3 {
			return " (did you mean [" + known + "]?)"
		}
	}
	return ""
}

// list writes "a, b and c", or the first few and how many more there are.
func list(items []string) string {
	if len(items) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:maxNamed], ", "), len(items)-maxNamed)
	}
	if len(items) == 1 {
		return items[0]
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
