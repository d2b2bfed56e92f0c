package prompt

import (
	"math"
	"strings"
	"testing"
)

func TestInstrumental(t *testing.T) {
	for caption, want := range map[string]string{
		"Soft piano":        "Soft piano. Instrumental, no vocals.",
		"Soft piano. ":      "Soft piano. Instrumental, no vocals.",
		"- piano\n- slow\n": "- piano\n- slow\nInstrumental, no vocals.",
		" ":                 "Instrumental, no vocals.",
	} {
		if got, _ := Instrumental(caption, 60); got != want {
			t.Errorf("caption %q becomes %q, want %q", caption, got, want)
		}
	}
	for seconds, want := range map[float64]string{
		0.04:        "[instrumental]",
		15:          "[instrumental]",
		30:          "[intro]\n[instrumental]",
		60:          "[intro]\n[instrumental]\n[solo]\n[outro]",
		75:          "[intro]\n[instrumental]\n[solo]\n[instrumental]\n[outro]",
		math.NaN():  "[instrumental]",
		math.Inf(1): "",
	} {
		_, got := Instrumental("x", seconds)
		if want != "" && got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
		if n := strings.Count(got, "["); n < 1 || n > maxSections {
			t.Errorf("%v s: %d sections", seconds, n)
		}
		if w := appendUnknownTags(nil, Normalise(got)); w != nil {
			t.Errorf("%v s: %q", seconds, w)
		}
	}
}
