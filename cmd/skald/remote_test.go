package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSingAtServer makes the same song here and at a server, and interrupts another.
func TestSingAtServer(t *testing.T) {
	t.Chdir(t.TempDir())
	s := serve(t, "--api-key", "secret")
	s.wait(t, func() bool { return s.status(t, "/readyz") == http.StatusOK })
	environ := []string{"SKALD_SERVER=" + s.url, "SKALD_KEY=secret"}
	if got := skald(t, with(short, "--seed", "5", "-o", "here.pcm")...); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	got := skaldWith(t, t.Context(), environ, "", with(short, "--seed", "5", "-o", "there.pcm", "--threads", "1")...)
	if got.code != exitOK || read(t, "here.pcm") != read(t, "there.pcm") {
		t.Errorf("another song from the server: %+v", got)
	}
	for _, want := range []string{"job_", "ar       done", "vocoder  done", "demonstration model", "--threads has no effect"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("standard error lacks %q: %s", want, got.stderr)
		}
	}
	for _, want := range []string{"there.pcm", "skald-nano", "stereo at 44100 Hz", "seed         5", "music a second"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the report lacks %q: %s", want, got.stdout)
		}
	}
	for args, part := range map[string]string{
		"--server nowhere":      "not an address",
		"--key wrong":           "API key is wrong",
		"--steps 999":           "1 to 200",
		"--trace x.safetensors": "--trace cannot be had",
		"--rng torch":           "--rng torch cannot be had",
	} {
		got := skaldWith(t, t.Context(), environ, "", with(short, strings.Fields(args)...)...)
		if got.code == exitOK || !strings.Contains(got.stderr, part) {
			t.Errorf("%s: %+v", args, got)
		}
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	long := with(short, "--duration", "120", "--steps", "100", "-o", "long.wav")
	ended := make(chan result)
	go func() { ended <- skaldWith(t, ctx, environ, "", long...) }()
	s.wait(t, func() bool {
		return strings.Contains(s.stderr.String(), "try=1") && strings.Count(s.stderr.String(), "job begun") == 2
	})
	cancel(&signalError{2})
	select {
	case got := <-ended:
		if got.code != exitSignal+2 || strings.Contains(got.stderr, "could not be cancelled") {
			t.Errorf("after an interrupt: %+v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the interrupt had no effect")
	}
	s.wait(t, func() bool { return strings.Contains(s.stderr.String(), "cancel status=200") })
	if files, _ := filepath.Glob("*long*"); len(files) != 0 {
		t.Errorf("an interrupted song left %v", files)
	}
	if _, err := os.Stat("there.pcm"); err != nil {
		t.Error(err)
	}
}
