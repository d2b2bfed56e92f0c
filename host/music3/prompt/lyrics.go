package prompt

import "strings"

// Normalise puts the section tags of lyrics on lines of their own, in lower case,
// and a [start] before all, exactly as the reference's _normalize_lyrics does.
// Text behind the tags at the start of a line is dropped; see [Friendly]. The
// time is linear in the length of the lyrics.
func Normalise(lyrics string) string {
	lines := strings.Split(lyrics, "\n")
	for i, line := range lines {
		if tags, _ := leadingTags(line); tags != "" {
			lines[i] = tags
		}
	}
	text := strings.Join(lines, "\n")
	text = strings.ReplaceAll(text, "] ", "]\n")
	text = strings.ReplaceAll(text, " [", "\n[")
	text = strings.ReplaceAll(text, " ^ ", "\n")

	out := strings.Builder{}
	out.WriteString("[start]\n")
	for {
		before, inside, after, ok := cutTag(text)
		if !ok {
			break
		}
		out.WriteString(before + "[" + lower(inside) + "]")
		text = after
	}
	out.WriteString(text)
	return out.String()
}

// cutTag cuts s around its first \[([^\]]+)\] .
func cutTag(s string) (before, inside, after string, ok bool) {
	for open := 0; ; open++ {
		next := strings.IndexByte(s[open:], '[')
		if next < 0 {
			return s, "", "", false
		}
		open += next
		n := strings.IndexByte(s[open+1:], ']')
		if n < 0 {
			return s, "", "", false
		}
		if n > 0 {
			return s[:open], s[open+1 : open+1+n], s[open+n+2:], true
		}
	}
}

// leadingTags cuts a line behind the section tags that it starts with, the match
// of ^[ \t]*((?:\[[^\]]+\][ \t]*)+) . The white space around the tags goes with
// neither part. Without a tag, rest is the line.
func leadingTags(line string) (tags, rest string) {
	start := strings.TrimLeft(line, " \t")
	rest = start
	for strings.HasPrefix(rest, "[") {
		n := strings.IndexByte(rest[1:], ']')
		if n < 1 {
			break
		}
		rest = strings.TrimLeft(rest[n+2:], " \t")
	}
	if len(rest) == len(start) {
		return "", line
	}
	return strings.TrimRight(start[:len(start)-len(rest)], " \t"), rest
}

// separateTags makes lyrics from which Normalise drops nothing: text behind
// section tags moves to a line of its own, CRLF becomes LF. It returns the
// numbers of the lines that it cut, counted from 1.
func separateTags(lyrics string) (separated string, cut []int) {
	var out []string
	for i, line := range strings.Split(strings.ReplaceAll(lyrics, "\r\n", "\n"), "\n") {
		tags, rest := leadingTags(line)
		for tags != "" && !Blank(rest) {
			if len(cut) == 0 || cut[len(cut)-1] != i+1 {
				cut = append(cut, i+1)
			}
			out = append(out, tags)
			line = strings.TrimFunc(rest, isSpace)
			// Tags may follow: only spaces and tabs keep them together above.
			tags, rest = leadingTags(line)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), cut
}

// droppedLines returns the numbers of the lines, counted from 1, that lose text
// in Normalise.
func droppedLines(lyrics string) []int {
	var dropped []int
	for i, line := range strings.Split(lyrics, "\n") {
		if tags, rest := leadingTags(line); tags != "" && !Blank(rest) {
			dropped = append(dropped, i+1)
		}
	}
	return dropped
}
