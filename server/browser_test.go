package server

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// playerPage plays a song while it is made and tells the server what came of it.
//
//go:embed testdata/player.html
var playerPage string

// TestBrowser has the audio element of a real browser play songs while they are made. It
// needs Chromium, and runs when SKALD_TEST_BROWSER=1.
func TestBrowser(t *testing.T) {
	if os.Getenv("SKALD_TEST_BROWSER") != "1" {
		t.Skip("SKIPPED: the tests with a browser are left out; set SKALD_TEST_BROWSER=1 to run them with an installed Chromium")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	s := openBuiltIn(t, Config{})
	player := template.Must(template.New("").Parse(playerPage))
	told := make(chan string, 8)
	routes := http.NewServeMux()
	routes.Handle("/", s.Handler())
	routes.HandleFunc("GET /player/{format}", func(w http.ResponseWriter, r *http.Request) {
		if err := player.Execute(w, r.PathValue("format")); err != nil {
			t.Error(err)
		}
	})
	routes.HandleFunc("POST /told", func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(io.LimitReader(r.Body, 1000))
		if err != nil {
			t.Error(err)
		}
		told <- string(text)
	})
	ts := httptest.NewServer(routes)
	defer ts.Close()
	// All but bare samples, which no element plays.
	for _, format := range []string{"wav", "flac", "mp3", "opus"} {
		t.Run(format, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
				"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
				"--autoplay-policy=no-user-gesture-required", "--mute-audio", ts.URL+"/player/"+format)
			// The browser is many processes, which end together.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
			start := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Cancel()
				_ = cmd.Wait() // it was killed
				s.waitPlaces(t, 0)
			}()
			var text string
			select {
			case text = <-told:
			case <-time.After(2 * time.Minute):
				t.Fatal("the page tells nothing")
			}
			var at float64
			if _, err := fmt.Sscanf(text, "played %g", &at); err != nil || at < 1 {
				t.Fatalf("the page says %q", text)
			}
			t.Logf("%s, %.1f s after the browser's start", text, time.Since(start).Seconds())
		})
	}
	if n := scrape(t, s)["skald_stream_first_audio_seconds_count"]; n < 4 {
		t.Errorf("%v streams were sent", n)
	}
}
