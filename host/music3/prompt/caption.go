package prompt

import (
	"strings"
	"unicode/utf8"
)

// Clean takes the Markdown and the <|...|> tags out of a caption, exactly as the
// reference's _clean_caption does. The comments give its regular expressions.
// The time is linear in the length of the caption.
func Clean(caption string) string {
	lines := splitLines(rewriteTags(caption))
	for i, line := range lines {
		line = dropHeading(line)
		line = dropBullet(line, "*+-")
		line = dropBullet(line, "*")
		line = unwrapItalic(unwrapBold(line))
		lines[i] = strings.TrimRightFunc(line, isSpace)
	}
	text := emptyRules(strings.Join(lines, "\n"))
	text = strings.ReplaceAll(text, "• ", "")
	text = strings.ReplaceAll(text, "    ", "")
	return collapseBreaks(text)
}

// rewriteTags replaces <\|([^|]*)\|> by its trimmed inside, with " is " for the
// first white space in it.
func rewriteTags(s string) string {
	var out strings.Builder
	for {
		open := strings.Index(s, "<|")
		if open < 0 {
			break
		}
		inside := s[open+2:]
		end := strings.IndexByte(inside, '|')
		if end < 0 {
			break
		}
		if !strings.HasPrefix(inside[end:], "|>") {
			out.WriteString(s[:open+2])
			s = inside
			continue
		}
		out.WriteString(s[:open])
		s = inside[end+2:]
		inside = strings.TrimFunc(inside[:end], isSpace)
		if word := strings.IndexFunc(inside, isSpace); word >= 0 {
			out.WriteString(inside[:word] + " is ")
			inside = inside[word+spaceLen(inside[word:]):]
		}
		out.WriteString(inside)
	}
	out.WriteString(s)
	return out.String()
}

// dropHeading removes ^\s{0,3}#{1,6}\s+ .
func dropHeading(line string) string {
	margin := spaceLen(line)
	if utf8.RuneCountInString(line[:margin]) > 3 {
		return line
	}
	rest := strings.TrimLeft(line[margin:], "#")
	marks := len(line) - margin - len(rest)
	space := spaceLen(rest)
	if marks < 1 || marks > 6 || space == 0 {
		return line
	}
	return rest[space:]
}

// dropBullet removes ^\s*[bullets]\s+ .
func dropBullet(line, bullets string) string {
	rest := line[spaceLen(line):]
	if rest == "" || strings.IndexByte(bullets, rest[0]) < 0 {
		return line
	}
	space := spaceLen(rest[1:])
	if space == 0 {
		return line
	}
	return rest[1+space:]
}

// emptyRules removes ^\s*[-*_]{3,}\s*$ where ^ and $ also match at line breaks.
// The white space may hold line breaks: that before the rule is removed from the
// first line start on, that behind it up to its last line break.
func emptyRules(s string) string {
	var out strings.Builder
	for at := 0; at < len(s); {
		// at is the start of a line.
		rule := at + spaceLen(s[at:])
		end := len(s) - len(strings.TrimLeft(s[rule:], "-*_"))
		stop := end + spaceLen(s[end:])
		if stop < len(s) {
			stop = end + strings.LastIndexByte(s[end:stop], '\n')
		}
		if end-rule >= 3 && stop >= end {
			// The match is not empty, so the next one may start where it ends.
			if at = stop; s[at-1] == '\n' {
				continue
			}
			rule = at
		} else {
			out.WriteString(s[at:rule])
		}
		// No line start up to rule gives another result: go on behind it.
		next := strings.IndexByte(s[rule:], '\n')
		if next < 0 {
			out.WriteString(s[rule:])
			break
		}
		out.WriteString(s[rule : rule+next+1])
		at = rule + next + 1
	}
	return out.String()
}

// collapseBreaks replaces \n{2,} by one line break.
func collapseBreaks(s string) string {
	var out strings.Builder
	for i := range len(s) {
		if s[i] != '\n' || i == 0 || s[i-1] != '\n' {
			out.WriteByte(s[i])
		}
	}
	return out.String()
}
