package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// liteLLMVersion on PyPI is what the test was written for.
const liteLLMVersion = "1.108.7"

// liteLLMConfig is what docs/operating.md shows.
const liteLLMConfig = `
model_list:
  - model_name: song
    litellm_params:
      model: openai/skald-nano
      api_base: %s/v1
      api_key: test-key
    model_info:
      mode: audio_speech
      health_check_voice: default
general_settings:
  master_key: sk-test
`

// TestLiteLLM puts LiteLLM's proxy in front of the server: its health probe finds the
// speech model, and a song comes through it. It installs LiteLLM from PyPI, with some
// hundred packages that it needs, so it only runs when SKALD_TEST_LITELLM=1; another value
// is the path of an installed one.
func TestLiteLLM(t *testing.T) {
	program := os.Getenv("SKALD_TEST_LITELLM")
	switch program {
	case "":
		t.Skip("SKIPPED: the test with LiteLLM's proxy is left out; set SKALD_TEST_LITELLM=1 to install it from PyPI and run it")
	case "1":
		program = filepath.Join(installFromPyPI(t, "litellm[proxy]=="+liteLLMVersion), "litellm")
	}
	// The probe sends lyrics alone.
	s := openBuiltIn(t, Config{APIKeys: []string{"test-key"}, Instructions: "calm piano"}).run(t)
	config := filepath.Join(t.TempDir(), "litellm.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, liteLLMConfig, s.url), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	cmd := exec.CommandContext(t.Context(), program, "--config", config, "--host", "127.0.0.1", "--port", port)
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "LITELLM_LOCAL_MODEL_COST_MAP=True")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log := &logBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	}()
	ask := func(method, path string, body io.Reader) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+port+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer sk-test")
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, nil // it does not listen yet
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, data
	}
	for start := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if status, _ := ask("GET", "/health/liveliness", nil); status == http.StatusOK {
			break
		}
		if time.Since(start) > 3*time.Minute {
			t.Fatalf("LiteLLM does not start:\n%s", log)
		}
	}
	var health struct {
		Healthy   int `json:"healthy_count"`
		Unhealthy int `json:"unhealthy_count"`
	}
	status, data := ask("GET", "/health", nil)
	if err := json.Unmarshal(data, &health); err != nil || status != http.StatusOK || health.Healthy != 1 || health.Unhealthy != 0 {
		t.Errorf("its health probe: %d %s, %v", status, data, err)
	}
	status, data = ask("POST", "/v1/audio/speech", strings.NewReader(`{"model":"song","input":"la","voice":"default","response_format":"wav"}`))
	if status != http.StatusOK || len(data) < 10000 || string(data[:4]) != "RIFF" {
		t.Errorf("a song: %d, %d bytes", status, len(data))
	}
}
