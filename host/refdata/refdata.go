// Package refdata finds the recorded reference data, which is too large to lie in
// the repository, and says loudly what a test leaves out without it.
package refdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Env names the folder of the recorded data.
const Env = "SKALD_SHARED"

// Shared returns the folder of the recorded reference data: $SKALD_SHARED, or a
// folder "shared" beside the repository. Without it the test is skipped, with a
// message that says what was not examined.
func Shared(t testing.TB, what string) string {
	t.Helper()
	dir, ok := Find()
	if !ok {
		t.Skipf("NOT EXAMINED: %s (set %s to the folder of recorded reference data)", what, Env)
	}
	return dir
}

// Find is Shared without a test.
func Find() (dir string, ok bool) {
	if dir := os.Getenv(Env); dir != "" {
		return dir, true
	}
	at, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			dir := filepath.Join(filepath.Dir(at), "shared")
			_, err := os.Stat(filepath.Join(dir, "golden"))
			return dir, err == nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", false
		}
		at = up
	}
}
