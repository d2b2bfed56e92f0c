package server

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// schemathesisVersion is the one on PyPI that the test was written for.
const schemathesisVersion = "4.32.5"

// TestSchemathesis lets schemathesis make requests from /openapi.json, good and bad, and
// hold the replies against it. It installs schemathesis from PyPI, so it only runs when
// SKALD_TEST_SCHEMATHESIS=1; another value is the path of an installed one.
func TestSchemathesis(t *testing.T) {
	program := os.Getenv("SKALD_TEST_SCHEMATHESIS")
	switch program {
	case "":
		t.Skip("SKIPPED: the tests with schemathesis are left out; set SKALD_TEST_SCHEMATHESIS=1 to install it from PyPI and run them")
	case "1":
		program = filepath.Join(installFromPyPI(t, "schemathesis=="+schemathesisVersion), "schemathesis")
	}
	// A model that sings at once: what is tested is how it is asked.
	s, _ := newTestServer(t, Config{APIKeys: []string{"test-key"}, Aliases: []string{"tts-1"}}, &fakeSinger{})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	cmd := exec.CommandContext(t.Context(), program, "run", ts.URL+"/openapi.json",
		"--header", "Authorization: Bearer test-key", "--seed", "1", "--no-color", "--max-examples", "40",
		// What one field says about another no schema can tell, so that a body that
		// conforms may be refused; TestOpenAPIRequests looks at these.
		"--exclude-checks", "positive_data_acceptance",
		"--suppress-health-check", "filter_too_much") // few strings can be a part of a path
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cases := regexp.MustCompile(`(?m)^.*\d+ generated.*$`).Find(out)
	if cases == nil {
		t.Fatalf("no cases:\n%s", out)
	}
	t.Logf("%s", cases)
}
