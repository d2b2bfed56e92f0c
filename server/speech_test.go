package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skald/host/engine"
)

func TestSpeechReply(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	tests := []struct{ body, contentType string }{
		{validBody, "audio/wav"},
		{strings.Replace(validBody, "{", `{"response_format":"wav",`, 1), "audio/wav"},
		{strings.Replace(validBody, "{", `{"response_format":"pcm",`, 1), "audio/pcm"},
	}
	for _, tt := range tests {
		w := post(s, tt.body)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", tt.body, w.Code, w.Body)
		}
		want := map[string]string{
			"Content-Type": tt.contentType, "Content-Length": strconv.Itoa(w.Body.Len()),
			"Skald-Seed": "18446744073709551615", "Skald-Frames": "1", "Skald-End-Reason": "length",
			"Skald-Sample-Rate": "44100", "Skald-Channels": "2",
		}
		for name, value := range want {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", tt.contentType, name, got, value)
			}
		}
		if w.Header().Get("X-Request-Id") == "" {
			t.Error("no X-Request-Id")
		}
		if got, want := w.Header().Values("Skald-Warning"), []string{`one\nline`, `zwei T\u00f6ne \U0001f3b5`}; !slices.Equal(got, want) {
			t.Errorf("warnings %q, want %q", got, want)
		}
		timing := `^queue;dur=0\.250, load;dur=0\.000, prompt;dur=0\.000, ar;dur=1500\.000, flow;dur=0\.000, vocoder;dur=0\.000, encode;dur=\d+\.\d{3}$`
		if got := w.Header().Get("Server-Timing"); !regexp.MustCompile(timing).MatchString(got) {
			t.Errorf("Server-Timing %q", got)
		}

		body := decode(t, strings.TrimPrefix(tt.contentType, "audio/"), 44100, w.Body.Bytes())
		if len(body) != 12288 {
			t.Fatalf("%s: %d bytes of samples", tt.contentType, len(body))
		}
		song := testSong(engine.Request{})
		for i := range 3072 {
			for c := range 2 {
				got := int16(binary.LittleEndian.Uint16(body[4*i+2*c:]))
				if want := int16(math.RoundToEven(float64(song.Samples[c][i] * 32767))); got != want {
					t.Fatalf("%s: sample %d of channel %d is %d, want %d", tt.contentType, i, c, got, want)
				}
			}
		}
	}
}

// What the caller said reaches the engine.
func TestSpeechRequest(t *testing.T) {
	var seen engine.Request
	m := &fakeSinger{song: func(_ context.Context, r engine.Request) (*engine.Song, error) {
		seen = r
		return testSong(r), nil
	}}
	s, _ := newTestServer(t, Config{Instructions: "house style", Aliases: []string{"tts-1"}}, m)
	w := post(s, `{"model":"tts-1","lyrics":"la","duration":2,"seed":9007199254740993,"steps":7,"guidance_scale":0,"prompt_mode":"reference"}`)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := engine.Request{Lyrics: "la", Instructions: "house style", MaxFrames: 50, Seed: 9007199254740993, Steps: 7, PromptMode: engine.Reference, RNG: engine.Philox}
	seen.Sink, seen.Progress = nil, nil
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("the engine got\n%+v, want\n%+v", seen, want)
	}
}

func TestSpeechErrors(t *testing.T) {
	failing := func(err error) *fakeSinger {
		return &fakeSinger{song: func(context.Context, engine.Request) (*engine.Song, error) { return nil, err }}
	}
	nan := &fakeSinger{song: func(_ context.Context, r engine.Request) (*engine.Song, error) {
		song := testSong(r)
		song.Samples[1][5] = float32(math.NaN())
		return song, nil
	}}
	tooLong := &fakeSinger{check: func(engine.Request) ([]string, error) {
		return nil, errors.Join(
			&engine.RequestError{Field: "instructions", Message: "5001 tokens, the limit is 5000"},
			&engine.RequestError{Field: "max_frames", Message: "10241 positions, the limit is 10240"})
	}}
	panics := &fakeSinger{song: func(context.Context, engine.Request) (*engine.Song, error) { panic("out of tune") }}
	tests := []struct {
		name   string
		m      singer
		body   string
		status int
		code   string
		param  string // "": null
		part   string // of the message
	}{
		{"loading", nil, validBody, 503, "model_loading", "", "loaded"},
		{"empty", &fakeSinger{}, "", 400, "invalid_json", "", "empty"},
		{"unknown", &fakeSinger{}, `{"audio_duration_s":0.1,` + validBody[1:], 400, "unknown_parameter", "audio_duration_s", "audio_duration"},
		{"model", &fakeSinger{}, `{"model":"song/modl",` + validBody[1:], 404, "model_not_found", "model", "song/model"},
		{"model and more", &fakeSinger{}, `{"model":"song/modl","seed":-1,` + validBody[1:], 400, "model_not_found", "model", "3 problems"},
		{"too long", tooLong, validBody, 400, "invalid_value", "instructions", "max_new_tokens: 10241"},
		{"refused late", failing(&engine.RequestError{Field: "lyrics", Message: "no frame came of them"}), validBody, 400, "invalid_value", "input", "no frame"},
		{"numeric", failing(&engine.NumericError{Stage: engine.StageFlow, What: "NaN"}), validBody, 500, "numeric_failure", "", "stage flow"},
		{"not finite", nan, validBody, 500, "internal_error", "", "X-Request-Id"},
		{"memory", failing(&engine.MemoryError{What: "the song", Need: 9, Have: 3}), validBody, 503, "out_of_memory", "", "9 bytes"},
		{"closed", failing(engine.ErrClosed), validBody, 503, "draining", "", "shut down"},
		{"other", failing(errors.New("secret path")), validBody, 500, "internal_error", "", "X-Request-Id"},
		{"panic", panics, validBody, 500, "internal_error", "", "X-Request-Id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, log := newTestServer(t, Config{}, tt.m)
			w := post(s, tt.body)
			e := wantError(t, w, tt.status, tt.code)
			param := ""
			if e.Error.Param != nil {
				param = *e.Error.Param
			}
			if param != tt.param || !strings.Contains(e.Error.Message, tt.part) {
				t.Errorf("param %q, message %q; want %q, %q", param, e.Error.Message, tt.param, tt.part)
			}
			if tt.status == 503 && w.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			if got := w.Header().Get("X-Should-Retry"); (got == "false") != (tt.code == "numeric_failure") {
				t.Errorf("X-Should-Retry is %q", got)
			}
			if tt.status == 500 && !strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("the log does not tell:\n%s", log)
			}
			if s.places != 0 || len(s.placesOf) != 0 {
				t.Errorf("%d places of %d keys are left over", s.places, len(s.placesOf))
			}
		})
	}
}

func TestFiveFaultsAreFiveProblems(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	w := post(s, `{"input":7,"instructions":"folk","audio_duration_s":1,"seed":1.5,"top_k":3,"response_format":"wave"}`)
	e := wantError(t, w, http.StatusBadRequest, "invalid_type")
	var pointers []string
	for _, p := range e.Error.Problems {
		pointers = append(pointers, *p.Pointer)
	}
	if want := []string{"/input", "/audio_duration_s", "/seed", "/top_k", "/response_format"}; !slices.Equal(pointers, want) {
		t.Errorf("problems at %v, want %v", pointers, want)
	}
	if e.Error.Problems[1].Suggestion != "audio_duration" || e.Error.Problems[4].Suggestion != "wav" {
		t.Errorf("suggestions: %+v", e.Error.Problems)
	}
}

func TestRequestHeaders(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	const path = "/v1/audio/speech"
	large := strings.Repeat(" ", maxBodyBytes)
	tests := []struct {
		name   string
		w      *httptest.ResponseRecorder
		status int
		code   string // "" for a song
	}{
		{"plain", post(s, validBody), 200, ""},
		{"charset", do(s, "POST", path, validBody, "Content-Type", "Application/JSON; charset=UTF-8"), 200, ""},
		{"identity", post(s, validBody, "Content-Encoding", "identity"), 200, ""},
		{"no type", do(s, "POST", path, validBody), 200, ""},
		{"exactly 1 MiB", post(s, validBody+large[len(validBody):]), 200, ""},
		{"no type, from a page", do(s, "POST", path, validBody, "Origin", "https://example.org"), 415, "unsupported_media_type"},
		{"form", do(s, "POST", path, validBody, "Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported_media_type"},
		{"text", do(s, "POST", path, validBody, "Content-Type", "text/plain"), 415, "unsupported_media_type"},
		{"broken type", do(s, "POST", path, validBody, "Content-Type", "application/json; ="), 415, "unsupported_media_type"},
		{"latin", do(s, "POST", path, validBody, "Content-Type", "application/json; charset=latin1"), 415, "unsupported_media_type"},
		{"gzip", post(s, validBody, "Content-Encoding", "gzip"), 415, "unsupported_media_type"},
		{"1 MiB and 1", post(s, validBody+large[len(validBody)-1:]), 413, "request_too_large"},
		{"query", do(s, "POST", path+"?stream=true", validBody), 400, "unknown_parameter"},
		{"GET without fields", do(s, "GET", path, ""), 400, "missing_required_parameter"},
		{"DELETE", do(s, "DELETE", path, ""), 405, "method_not_allowed"},
		{"PUT", do(s, "PUT", path, validBody), 405, "method_not_allowed"},
		{"OPTIONS", do(s, "OPTIONS", path, ""), 405, "method_not_allowed"},
		{"slash", do(s, "POST", path+"/", validBody), 404, "not_found"},
		{"elsewhere", do(s, "POST", "/v1/audio/transcriptions", ""), 404, "not_found"},
		{"no page", do(s, "GET", "/index.php", ""), 404, "not_found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.code != "" {
				wantError(t, tt.w, tt.status, tt.code)
			} else if tt.w.Code != tt.status {
				t.Errorf("%d %s", tt.w.Code, tt.w.Body)
			}
			if allow := tt.w.Header().Get("Allow"); tt.status == 405 && allow != "GET, POST" {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
}

// A body whose length is not announced is stopped at the limit all the same.
func TestChunkedBodyTooLarge(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	endless := io.LimitReader(neverEnding(' '), 64<<20)
	r, err := http.NewRequest("POST", ts.URL+"/v1/audio/speech", endless)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := ts.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if e := decodeError(t, resp.Body, resp.Header); resp.StatusCode != 413 || e.Error.Code != "request_too_large" {
		t.Errorf("%d %+v", resp.StatusCode, e)
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// Whatever is sent, the answer is a 4xx with an error object and the server lives.
func TestHostileBodiesOverHTTP(t *testing.T) {
	s := openBuiltIn(t, Config{})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	emoji := strings.Repeat("🎵", (maxBodyBytes-100)/4)
	bodies := []string{
		"", "null", "[]", "NaN", "{", "\x00", "\xff\xfe", "\uFEFF{}", "}", validBody + validBody,
		`{"input":"` + emoji + `"}`, `{"input":"` + emoji + `","prompt":"calm"}`, `{"input":"la","prompt":"` + emoji + `"}`,
		`{"` + emoji + `":1}`, emoji,
		strings.Repeat("[", maxBodyBytes), strings.Repeat(`{"a":`, maxBodyBytes/5),
		`{"input":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"{" + strings.Repeat(`"a":1,`, maxBodyBytes/6-10) + `"b":2}`,
		`{"seed":` + strings.Repeat("9", maxBodyBytes-20) + `}`,
		`{"seed":0.` + strings.Repeat("0", maxBodyBytes-20) + `1}`,
		`{"seed":1e` + strings.Repeat("9", maxBodyBytes-20) + `}`,
		`{"audio_duration":1e` + strings.Repeat("9", 1000) + `}`,
		`{"input":"` + strings.Repeat(`\ud800`, (maxBodyBytes-20)/6) + `"}`,
	}
	for i, body := range bodies {
		start := time.Now()
		resp, err := http.Post(ts.URL+"/v1/audio/speech", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatalf("body %d, %.40q: %v", i, body, err)
		}
		e := decodeError(t, resp.Body, resp.Header)
		resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode > 499 {
			t.Errorf("body %d, %.40q: %d %.200s", i, body, resp.StatusCode, e.Error.Message)
		}
		if len(e.Error.Message) > 64<<10 || time.Since(start) > 5*time.Second {
			t.Errorf("body %d, %.40q: a message of %d bytes after %v", i, body, len(e.Error.Message), time.Since(start))
		}
	}
	if w := post(s, `{"input":"la","prompt":"calm","duration":0.04}`); w.Code != http.StatusOK {
		t.Errorf("a song after all of them: %d %s", w.Code, w.Body)
	}
	t.Logf("%d bodies", len(bodies))
}

func TestHeaderText(t *testing.T) {
	tests := map[string]string{
		"plain":                  "plain",
		"a\r\nSet-Cookie: x":     `a\r\nSet-Cookie: x`,
		"\x00\x7f\"ü\xff":        `\x00\x7f"\u00fc\ufffd`,
		strings.Repeat("é", 501): strings.Repeat(`\u00e9`, 500) + "...",
	}
	for in, want := range tests {
		if got := headerText(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
