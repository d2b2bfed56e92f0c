package prompt

import "strings"

// unwrapBold replaces \*\*([^*]+)\*\* by its group until nothing changes.
//
// Every replacement takes two stars from the end of one run and two from the
// start of the next. The reference goes over the whole line again and again,
// which is quadratic ("**" * n + "a" + "**b" * n unwraps one pair per pass). Here
// a pass starts only from the runs that the pass before it changed. A run of two
// stars or more that it left alone has a neighbour of a single star behind it,
// which can neither close a pair nor vanish.
func unwrapBold(line string) string {
	if !strings.Contains(line, "**") {
		return line
	}
	texts, runs := starRuns(line)
	n := len(runs)
	// The runs that still have stars are a doubly linked list, n its end.
	prev, next := make([]int, n+1), make([]int, n+1)
	openers := make([]int, n)
	for i := range n {
		prev[i], next[i], openers[i] = i-1, i+1, i
	}
	prev[n] = n - 1
	var changed []int
	for len(openers) > 0 {
		changed = changed[:0]
		for _, i := range openers {
			// If i closed a pair in this pass, only the rest of it can open one.
			close := next[i]
			if close == n || runs[i] < 2 || runs[close] < 2 {
				continue
			}
			runs[i] -= 2
			runs[close] -= 2
			changed = appendOnce(changed, i)
			changed = appendOnce(changed, close)
		}
		// A run without stars joins the texts around it, but only for the next pass.
		for _, i := range changed {
			if runs[i] > 0 {
				continue
			}
			if prev[i] >= 0 {
				next[prev[i]] = next[i]
			}
			prev[next[i]] = prev[i]
		}
		openers = openers[:0]
		for _, i := range changed {
			if runs[i] >= 2 {
				openers = append(openers, i)
			}
		}
	}
	return joinStars(texts, runs)
}

// appendOnce appends x to an ascending list unless it is the last already.
func appendOnce(list []int, x int) []int {
	if n := len(list); n > 0 && list[n-1] == x {
		return list
	}
	return append(list, x)
}

// starRuns cuts s into its runs of stars and the texts around them: text[0],
// runs[0] stars, text[1], ... The texts between two runs are not empty.
func starRuns(s string) (texts []string, runs []int) {
	for {
		star := strings.IndexByte(s, '*')
		if star < 0 {
			return append(texts, s), runs
		}
		texts = append(texts, s[:star])
		behind := strings.TrimLeft(s[star:], "*")
		runs = append(runs, len(s)-star-len(behind))
		s = behind
	}
}

func joinStars(texts []string, runs []int) string {
	var out strings.Builder
	for i, text := range texts {
		out.WriteString(text)
		if i < len(runs) {
			out.WriteString(strings.Repeat("*", runs[i]))
		}
	}
	return out.String()
}

// unwrapItalic replaces (?<!\*)\*([^*\n]+)\*(?!\*) by its group: two neighbouring
// runs of a single star, from left to right.
func unwrapItalic(line string) string {
	texts, runs := starRuns(line)
	for i := 0; i+1 < len(runs); i++ {
		if runs[i] == 1 && runs[i+1] == 1 {
			runs[i], runs[i+1] = 0, 0
			i++
		}
	}
	return joinStars(texts, runs)
}
