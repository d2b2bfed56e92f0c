package server

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// openAIVersion of the client on PyPI is what testdata/openai_client.py was written for.
const openAIVersion = "3.57.0"

// TestOpenAIClient runs OpenAI's Python client against the server. It installs the
// client from PyPI, so it only runs when SKALD_TEST_OPENAI=1; SKALD_TEST_PYTHON names a
// Python that has the client already.
func TestOpenAIClient(t *testing.T) {
	if os.Getenv("SKALD_TEST_OPENAI") != "1" {
		t.Skip("SKIPPED: the tests with OpenAI's Python client are left out; set SKALD_TEST_OPENAI=1 to install it from PyPI and run them")
	}
	python := pythonWithOpenAI(t)

	s := openBuiltIn(t, Config{Aliases: []string{"tts-1"}, APIKeys: []string{"test-key"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	defer func() {
		stop()
		if err := receive(t, done, "end of Run"); err != nil {
			t.Error(err)
		}
	}()

	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "openai_client.py"))
	cmd.Env = append(os.Environ(), "SKALD_TEST_URL=http://"+l.Addr().String()+"/v1", "SKALD_TEST_KEY=test-key", "NO_PROXY=127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ran := regexp.MustCompile(`(?m)^Ran \d+ tests`).Find(out)
	if ran == nil {
		t.Fatalf("no tests ran:\n%s", out)
	}
	t.Logf("%s with OpenAI's client", ran)
}

// pythonWithOpenAI returns the path of a Python that can import the client.
func pythonWithOpenAI(t *testing.T) string {
	t.Helper()
	if python := os.Getenv("SKALD_TEST_PYTHON"); python != "" {
		return python
	}
	return filepath.Join(installFromPyPI(t, "openai=="+openAIVersion), "python")
}

// installFromPyPI installs a package into an environment of its own and returns where
// its programs are.
func installFromPyPI(t *testing.T, name string) (bin string) {
	t.Helper()
	system, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIPPED: the tests with %s are left out: there is no python3", name)
	}
	venv := filepath.Join(t.TempDir(), "venv")
	bin = filepath.Join(venv, "bin")
	for _, args := range [][]string{
		{system, "-m", "venv", venv},
		{filepath.Join(bin, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", name},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return bin
}
