package nearest

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	known := []string{"seed", "steps", "stream", "stream_format", "audio_duration", "input", "max-queue", "sing", "serve"}
	for written, want := range map[string]string{
		"sede": "seed", "esed": "seed", "seeed": "seed", "SEED": "seed", "sed": "seed",
		"audioDuration": "audio_duration", "audio-duration": "audio_duration", "audio_duraiton_s": "audio_duration",
		"stream_fromat": "stream_format", "maxqueue": "max-queue", "snig": "sing", "srve": "serve",
		"des": "", "eeds": "", "temperature": "", "x": "", "": "", "str": "stream", "stre": "stream",
		strings.Repeat("seed", 100): "",
	} {
		if got := Name(written, known); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
	if got := Name("seed", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"seed", "seed", 0}, {"sede", "seed", 1}, {"esed", "seed", 1}, {"esde", "seed", 3}, {"töne", "tnöe", 1}, {"", "ab", 2}, {"sedex", "seed", 2}} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q, %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
