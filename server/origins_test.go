package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const validQuery = "/v1/audio/speech?input=%5Bverse%5D%0Ala&instructions=folk&audio_duration=0.04&seed=18446744073709551615"

// A GET gives what a POST of the same fields gives.
func TestGet(t *testing.T) {
	s, log := newTestServer(t, Config{APIKeys: []string{"k"}, Aliases: []string{"tts-1"}}, &fakeSinger{})
	for _, members := range []string{"", "response_format=flac", "stream=true&response_format=mp3", "model=tts-1&stream_format=sse&response_format=pcm"} {
		var fields []string
		for pair := range strings.SplitSeq(members, "&") {
			if name, value, _ := strings.Cut(pair, "="); value == "true" {
				fields = append(fields, `"`+name+`":true`)
			} else if name != "" {
				fields = append(fields, `"`+name+`":"`+value+`"`)
			}
		}
		got := do(s, "GET", validQuery+"&"+members, "", "Authorization", "Bearer k")
		body := `{"input":"[verse]\nla","instructions":"folk","audio_duration":0.04,"seed":18446744073709551615` + strings.Join(append([]string{""}, fields...), ",") + "}"
		want := post(s, body, "Authorization", "Bearer k")
		if got.Code != http.StatusOK || !bytes.Equal(sound(t, got), sound(t, want)) || got.Header().Get("Content-Type") != want.Header().Get("Content-Type") {
			t.Errorf("%s: %d, %d bytes; a POST %d, %d bytes", members, got.Code, got.Body.Len(), want.Code, want.Body.Len())
		}
		if got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: Cache-Control %q", members, got.Header().Get("Cache-Control"))
		}
	}
	// A key is never taken from the query, and what is there is not logged.
	for _, key := range []string{"api_key=k", "key=k", "authorization=Bearer+k", "access_token=k"} {
		wantError(t, do(s, "GET", validQuery+"&"+key, ""), http.StatusUnauthorized, "invalid_api_key")
		wantError(t, do(s, "GET", validQuery+"&"+key, "", "Authorization", "Bearer k"), http.StatusBadRequest, "unknown_parameter")
	}
	if strings.Contains(log.String(), "folk") {
		t.Errorf("the log tells the query:\n%s", log)
	}
	wantError(t, do(s, "GET", validQuery, "{}", "Authorization", "Bearer k"), http.StatusBadRequest, "invalid_request")
	wantError(t, do(s, "HEAD", validQuery, "", "Authorization", "Bearer k"), http.StatusMethodNotAllowed, "method_not_allowed")
}

// sound is the audio of a reply, bare or in events.
func sound(t *testing.T, w *httptest.ResponseRecorder) []byte {
	if w.Header().Get("Content-Type") != "text/event-stream" {
		return w.Body.Bytes()
	}
	all, _ := joinDeltas(t, events(t, w.Body))
	return all
}

// A page of another site makes no songs by an address alone, which no browser would ask
// about first.
func TestGetFromPages(t *testing.T) {
	const page = "https://page.example"
	tests := []struct {
		origins      []string
		site, origin string
		ok           bool
	}{
		{nil, "", "", true}, {nil, "none", "", true}, {nil, "same-origin", "", true}, {nil, "same-origin", page, true},
		{nil, "cross-site", "", false}, {nil, "same-site", "", false}, {nil, "cross-site", page, false}, {nil, "", page, false},
		{nil, "", "http://example.com", true}, {nil, "", "null", false},
		{[]string{page}, "cross-site", page, true}, {[]string{page}, "same-site", page, true}, {[]string{page}, "", page, true},
		{[]string{page}, "cross-site", "", false}, {[]string{page}, "cross-site", "https://other.example", false},
		{[]string{"*"}, "cross-site", "", false}, {[]string{"*"}, "cross-site", page, true},
	}
	for _, tt := range tests {
		s, _ := newTestServer(t, Config{CORSOrigins: tt.origins}, &fakeSinger{})
		var header []string
		if tt.site != "" {
			header = append(header, "Sec-Fetch-Site", tt.site)
		}
		if tt.origin != "" {
			header = append(header, "Origin", tt.origin)
		}
		w := do(s, "GET", validQuery, "", header...)
		if !tt.ok {
			wantError(t, w, http.StatusForbidden, "origin_not_allowed")
		} else if w.Code != http.StatusOK {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
	}
	t.Logf("%d requests", len(tests))
}
