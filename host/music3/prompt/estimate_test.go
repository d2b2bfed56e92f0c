package prompt

import (
	"testing"
	"time"
)

func TestEstimate(t *testing.T) {
	tests := []struct {
		name, lyrics      string
		shortest, longest time.Duration
	}{
		{"nothing", "", 0, 0},
		{"a section without words", "[intro]", 5 * time.Second, 15 * time.Second},
		{"sections on one line", "[intro] [solo]", 10 * time.Second, 30 * time.Second},
		{"nine syllables", "Walking slow along in the summer", 2 * time.Second, 4500 * time.Millisecond},
		{"a tag with words takes no time of its own", "[verse]\nWalking slow along in the summer", 2 * time.Second, 4500 * time.Millisecond},
		{"words beside their tag", "[verse] Walking slow along in the summer", 2 * time.Second, 4500 * time.Millisecond},
		{"words and an outro", "[verse]\nWalking slow along in the summer\n\n[outro]\n", 7 * time.Second, 19500 * time.Millisecond},
		{"a character is a syllable", "我爱你我爱你我爱你", 2 * time.Second, 4500 * time.Millisecond},
		{"other letters", "Привет, мой дорогой друг, да, да", 2 * time.Second, 4500 * time.Millisecond},
		{"words without vowels", "hm hm hm, brr brr brr, pst pst pst", 2 * time.Second, 4500 * time.Millisecond},
	}
	for _, tt := range tests {
		if shortest, longest := Estimate(tt.lyrics); shortest != tt.shortest || longest != tt.longest {
			t.Errorf("%s: %v to %v, want %v to %v", tt.name, shortest, longest, tt.shortest, tt.longest)
		}
	}
}
