package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"skald/host/engine"
)

func TestKeys(t *testing.T) {
	s, log := newTestServer(t, Config{APIKeys: []string{"first-key", "second-key"}}, &fakeSinger{})
	tests := []struct {
		header string
		ok     bool
	}{
		{"Bearer first-key", true}, {"Bearer second-key", true}, {"bearer first-key", true}, {"Bearer  first-key", true},
		{"", false}, {"Bearer", false}, {"Bearer ", false}, {"Basic first-key", false},
		{"Bearer first-keyy", false}, {"Bearer first-key2", false}, {"Bearer First-key", false}, {"Bearer first-key second-key", false},
	}
	for _, tt := range tests {
		for _, w := range []*httptest.ResponseRecorder{
			post(s, validBody, "Authorization", tt.header),
			do(s, "GET", "/v1/models", "", "Authorization", tt.header),
			do(s, "GET", "/v1/models/song/model", "", "Authorization", tt.header),
		} {
			if tt.ok && w.Code != http.StatusOK {
				t.Errorf("%q: %d %s", tt.header, w.Code, w.Body)
			}
			if !tt.ok {
				e := wantError(t, w, http.StatusUnauthorized, "invalid_api_key")
				if strings.Contains(e.Error.Message, "wrong") != strings.Contains(tt.header, "-key") {
					t.Errorf("%q: %s", tt.header, e.Error.Message)
				}
				if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
					t.Errorf("WWW-Authenticate is %q", got)
				}
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if w := do(s, "GET", path, ""); w.Code != http.StatusOK {
			t.Errorf("%s asks for a key: %d", path, w.Code)
		}
	}
	if strings.Contains(log.String(), "-key") {
		t.Errorf("the log has a key:\n%s", log)
	}
	for _, bad := range []string{"", " ", " key", "key\n"} {
		if _, err := New(Config{APIKeys: []string{bad}}); err == nil {
			t.Errorf("key %q is taken", bad)
		}
	}
}

// Keys can be replaced while the server runs, but not all taken away.
func TestSetAPIKeys(t *testing.T) {
	s, _ := newTestServer(t, Config{APIKeys: []string{"old", "both"}}, &fakeSinger{})
	status := func(key string) int { return do(s, "GET", "/v1/models", "", "Authorization", "Bearer "+key).Code }
	for _, bad := range [][]string{nil, {}, {"both", ""}, {" new"}} {
		if err := s.SetAPIKeys(bad); err == nil {
			t.Errorf("keys %q are taken", bad)
		}
	}
	if status("old") != 200 || status("both") != 200 || status("new") != 401 {
		t.Errorf("before: %d, %d, %d", status("old"), status("both"), status("new"))
	}
	if err := s.SetAPIKeys([]string{"both", "new"}); err != nil {
		t.Fatal(err)
	}
	if status("old") != 401 || status("both") != 200 || status("new") != 200 {
		t.Errorf("after: %d, %d, %d", status("old"), status("both"), status("new"))
	}
	open, _ := newTestServer(t, Config{}, &fakeSinger{})
	if err := open.SetAPIKeys(nil); err != nil {
		t.Errorf("a server without keys: %v", err)
	}
}

func TestCORS(t *testing.T) {
	const page, other = "https://page.example", "https://other.example"
	tests := []struct {
		origins []string
		origin  string
		want    string
	}{
		{nil, page, ""}, {[]string{page}, page, page}, {[]string{page}, other, ""}, {[]string{page}, "", ""},
		{[]string{"*"}, other, other}, {[]string{page}, "null", ""},
	}
	for _, tt := range tests {
		s, _ := newTestServer(t, Config{CORSOrigins: tt.origins, APIKeys: []string{"k"}}, &fakeSinger{})
		w := post(s, validBody, "Origin", tt.origin, "Authorization", "Bearer k")
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != tt.want || w.Code != http.StatusOK {
			t.Errorf("%v, %q: allowed origin is %q, status %d", tt.origins, tt.origin, got, w.Code)
		}
		// A browser asks first, without the key.
		w = do(s, "OPTIONS", "/v1/audio/speech", "", "Origin", tt.origin, "Access-Control-Request-Method", "POST")
		status := http.StatusMethodNotAllowed
		if tt.want != "" {
			status = http.StatusNoContent
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != tt.want || w.Code != status {
			t.Errorf("preflight of %v, %q: allowed origin is %q, status %d", tt.origins, tt.origin, got, w.Code)
		}
	}
	for _, bad := range []string{"", "example.org", "https://", "https://example.org/", "https://example.org/page"} {
		if _, err := New(Config{CORSOrigins: []string{bad}}); err == nil {
			t.Errorf("origin %q is taken", bad)
		}
	}
}

func TestRequestID(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	for _, id := range []string{"abc-123_D.4:5", strings.Repeat("x", 128)} {
		if got := do(s, "GET", "/healthz", "", "X-Request-Id", id).Header().Get("X-Request-Id"); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", "a b", "a\"", "é", strings.Repeat("x", 129)} {
		got := do(s, "GET", "/healthz", "", "X-Request-Id", id).Header().Get("X-Request-Id")
		if !strings.HasPrefix(got, "req_") || len(got) < 20 || seen[got] {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
}

func TestLog(t *testing.T) {
	s, log := newTestServer(t, Config{}, &fakeSinger{})
	secret := strings.Replace(validBody, "la", "secretlyric", 1)
	post(s, secret, "X-Request-Id", "id-1")
	post(s, strings.Replace(secret, "{", `{"secretfield":1,`, 1), "X-Request-Id", "id-2")
	do(s, "GET", "/secretpath", "", "X-Request-Id", "id-3")
	do(s, "GET", "/healthz", "", "X-Request-Id", "id-4")
	want := []string{
		`level=INFO msg=request method=POST route=/v1/audio/speech status=200 duration=`,
		`level=INFO msg=request method=POST route=/v1/audio/speech status=400 duration=`,
		`level=INFO msg=request method=GET route="" status=404 duration=`,
		`level=DEBUG msg=request method=GET route=/healthz status=200 duration=`,
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), log)
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) || !strings.HasSuffix(lines[i], fmt.Sprintf("request_id=id-%d", i+1)) {
			t.Errorf("line %d is\n\t%s\nwant\n\t%s", i, lines[i], w)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log repeats what was sent:\n%s", log)
	}
}

// A panic is one 500 and no more.
func TestPanic(t *testing.T) {
	song := func(context.Context, engine.Request) (*engine.Song, error) { panic("out of tune") }
	m := &fakeSinger{song: song}
	s, log := newTestServer(t, Config{MaxQueue: -1}, m)
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	for range 3 { // a place in the queue is not lost either
		resp, err := http.Post(ts.URL+"/v1/audio/speech", "application/json", strings.NewReader(validBody))
		if err != nil {
			t.Fatal(err)
		}
		if e := decodeError(t, resp.Body, resp.Header); resp.StatusCode != 500 || e.Error.Type != "server_error" {
			t.Errorf("%d %+v", resp.StatusCode, e)
		}
		resp.Body.Close()
	}
	if n := strings.Count(log.String(), "out of tune"); n != 3 || !strings.Contains(log.String(), "middleware_test.go") {
		t.Errorf("the log has %d of 3 panics, or no stack:\n%s", n, log)
	}
	m.song = nil
	if w := post(s, validBody); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// A reply that has begun is broken off, so that nobody takes the part for the whole.
func TestPanicInReply(t *testing.T) {
	s, _ := newTestServer(t, Config{}, nil)
	r := gin.New()
	r.Use(s.recoverPanic)
	r.GET("/", func(c *gin.Context) {
		c.String(http.StatusOK, "half")
		c.Writer.Flush()
		panic("out of tune")
	})
	ts := httptest.NewServer(r)
	defer ts.Close()
	resp, err := http.Get(ts.URL)
	if err == nil {
		defer resp.Body.Close()
		_, err = resp.Body.Read(make([]byte, 4))
		if err == nil {
			_, err = resp.Body.Read(make([]byte, 1))
		}
	}
	if err == nil || err.Error() == "EOF" {
		t.Errorf("the reply seems whole: %v", err)
	}
}
