package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// serving is a server that runs in the test.
type serving struct {
	url    string
	stop   context.CancelCauseFunc
	code   chan int
	stderr *safeBuffer
}

// serve starts the server on a free port and waits until it listens.
func serve(t *testing.T, args ...string) *serving {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	state, ended := t.TempDir(), make(chan struct{})
	s := &serving{stop: cancel, code: make(chan int, 1), stderr: &safeBuffer{}}
	go func() {
		defer close(ended)
		s.code <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--state-dir", state}, args...), nil, strings.NewReader(""), io.Discard, s.stderr)
	}()
	listening := regexp.MustCompile(`listening address=(\S+)`)
	s.wait(t, func() bool {
		m := listening.FindStringSubmatch(s.stderr.String())
		if m != nil {
			s.url = "http://" + m[1]
		}
		return m != nil
	})
	t.Cleanup(func() {
		cancel(nil)
		<-ended
	})
	return s
}

// wait polls, for at most 20 s.
func (s *serving) wait(t *testing.T, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain; standard error: %s", s.stderr)
}

func (s *serving) status(t *testing.T, path string) int {
	t.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

// TestServe asks a server for a song, and stops it as SIGTERM does.
func TestServe(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("# ours\n\nsecret-key-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "--api-key-file", keys, "--default-instructions", "fast piano, drums", "--alias", "tts-1")
	s.wait(t, func() bool { return s.status(t, "/readyz") == http.StatusOK })
	if !strings.Contains(s.stderr.String(), "built-in demonstration model") {
		t.Errorf("the server does not say what it serves: %s", s.stderr)
	}
	song := func(key string) *http.Response {
		body := `{"model": "tts-1", "input": "[verse]", "duration": 0.5, "steps": 2}`
		r, err := http.NewRequest("POST", s.url+"/v1/audio/speech", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	if r := song("wrong"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong key: %s", r.Status)
	}
	r := song("secret-key-1")
	data, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || len(data) < 80000 || string(data[:4]) != "RIFF" {
		t.Errorf("%s, %d bytes, %v", r.Status, len(data), err)
	}
	s.stop(&signalError{15})
	if code := <-s.code; code != exitOK {
		t.Errorf("exit code %d after a signal: %s", code, s.stderr)
	}
	if strings.Contains(s.stderr.String(), "secret-key-1") {
		t.Error("the key is in the log")
	}
}

// TestServeWithoutModel checks that a model that does not load ends the server.
func TestServeWithoutModel(t *testing.T) {
	s := serve(t, "--model", t.TempDir(), "--log-format", "text")
	if code := <-s.code; code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(s.stderr.String(), "skald: loading the model in ") {
		t.Errorf("standard error: %s", s.stderr)
	}
}
