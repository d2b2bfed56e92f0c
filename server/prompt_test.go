package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func askPrompt(t *testing.T, s *Server, body string, status int) promptReply {
	t.Helper()
	r := httptest.NewRequest("POST", "/v1/music/prompt", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	var reply promptReply
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != status {
		t.Fatalf("%s: %d %s, want %d", body, w.Code, w.Body, status)
	}
	return reply
}

// TestPrompt asks the built-in model: more words are more tokens, and less room.
func TestPrompt(t *testing.T) {
	s := openBuiltIn(t, Config{})
	short := askPrompt(t, s, `{"input":"[verse] la\n","prompt":"calm piano","duration":30}`, http.StatusOK)
	long := askPrompt(t, s, `{"input":"[verse]\nla\n`+strings.Repeat(`la la la la\n`, 200)+`","prompt":"calm piano","duration":30}`, http.StatusOK)
	m, _ := s.ready()
	info := m.Info()
	if short.PromptTokens < 8 || long.PromptTokens < short.PromptTokens+400 || short.MaxPromptTokens != info.MaxPromptTokens || short.AudioDuration != 30 {
		t.Errorf("%+v, %+v", short, long)
	}
	for _, r := range []promptReply{short, long} {
		frames := min(info.MaxPositions-1-r.PromptTokens, info.MaxFrames)
		if r.MaxAudioDuration != float64(frames)/info.FrameRate {
			t.Errorf("%d tokens leave room for %v s", r.PromptTokens, r.MaxAudioDuration)
		}
	}
	if !strings.Contains(strings.Join(short.Warnings, "\n"), "line 1") || strings.Contains(strings.Join(long.Warnings, "\n"), "line 1") {
		t.Errorf("warnings %q, %q", short.Warnings, long.Warnings)
	}
	if short.Estimate == nil || long.Estimate == nil || long.Estimate.Shortest < 100*short.Estimate.Shortest || long.Estimate.Longest <= long.Estimate.Shortest {
		t.Errorf("estimates %v, %v", short.Estimate, long.Estimate)
	}
	if r := askPrompt(t, s, `{"instrumental":true,"prompt":"calm"}`, http.StatusOK); r.Estimate != nil || r.PromptTokens < 8 {
		t.Errorf("instrumental: %+v", r)
	}
	askPrompt(t, s, `{"input":"la"}`, http.StatusBadRequest)
	askPrompt(t, s, `{"input":"la","prompt":"calm","duration":9999}`, http.StatusBadRequest)
}
