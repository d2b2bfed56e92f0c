package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/gin-gonic/gin"

	"skald/host/engine"
)

// document loads and validates a server's description of itself.
func document(t *testing.T, s *Server) (*openapi3.T, routers.Router) {
	t.Helper()
	w := do(s, "GET", "/openapi.json", "")
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc, openapi3.IsOpenAPI31OrLater())
	if err != nil {
		t.Fatal(err)
	}
	return doc, router
}

// TestOpenAPIRoutes compares the document's routes with the router's.
func TestOpenAPIRoutes(t *testing.T) {
	s, _ := newTestServer(t, Config{APIKeys: []string{"k"}}, &fakeSinger{})
	doc, _ := document(t, s)
	var documented, routed []string
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			documented = append(documented, method+" "+path)
			guarded := operation.Security == nil || len(*operation.Security) > 0
			concrete := strings.NewReplacer("models/{id}", "models/song/model", "{id}", "job_1").Replace(path)
			if refused := do(s, method, concrete, "").Code == http.StatusUnauthorized; refused != guarded {
				t.Errorf("%s %s: without a key refused %v, documented %v", method, path, refused, guarded)
			}
		}
	}
	for _, r := range s.handler.(*gin.Engine).Routes() {
		page := r.Path == "/" || strings.HasPrefix(r.Path, "/assets/") // for people
		if r.Method != http.MethodHead && !page {
			routed = append(routed, r.Method+" "+strings.NewReplacer("*id", "{id}", ":id", "{id}").Replace(r.Path))
		}
	}
	slices.Sort(documented)
	slices.Sort(routed)
	if !slices.Equal(documented, routed) {
		t.Errorf("documented %q\nrouted %q", documented, routed)
	}
	t.Logf("%d routes", len(routed))
}

func TestOpenAPIWhileLoading(t *testing.T) {
	s, _ := newTestServer(t, Config{}, nil)
	wantError(t, do(s, "GET", "/openapi.json", ""), http.StatusServiceUnavailable, "model_loading")
}

// TestOpenAPIReplies holds what is answered, in good times and bad, against the
// document.
func TestOpenAPIReplies(t *testing.T) {
	full := make(chan struct{})
	m := &fakeSinger{song: func(_ context.Context, r engine.Request) (*engine.Song, error) {
		switch r.Seed {
		case 1:
			return nil, &engine.MemoryError{What: "the song", Need: 2, Have: 1}
		case 2:
			return nil, errors.New("out of tune")
		case 3:
			full <- struct{}{}
			<-full
		}
		return testSong(r), nil
	}}
	s, _ := newTestServer(t, Config{MaxQueue: -1, Aliases: []string{"tts-1"}}, m)
	_, router := document(t, s)
	seed := func(n int) string { return strings.Replace(validBody, "18446744073709551615", fmt.Sprint(n), 1) }
	waiting := make(chan struct{})
	tests := []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/healthz", "", 200}, {"GET", "/readyz", "", 200}, {"GET", "/metrics", "", 200}, {"GET", "/openapi.json", "", 200},
		{"GET", "/v1/models", "", 200}, {"GET", "/v1/models/tts-1", "", 200}, {"GET", "/v1/models/other", "", 404},
		{"POST", "/v1/audio/speech", validBody, 200},
		{"POST", "/v1/music/prompt", validBody, 200}, {"POST", "/v1/music/prompt", `{}`, 400},
		{"POST", "/v1/audio/speech", with(`"response_format":"pcm"`), 200},
		{"POST", "/v1/audio/speech", with(`"response_format":"opus"`), 200},
		{"POST", "/v1/audio/speech", with(`"response_format":"mp3"`), 200},
		{"POST", "/v1/audio/speech", with(`"response_format":"flac","stream":true`), 200},
		{"POST", "/v1/audio/speech", with(`"stream_format":"sse"`), 200},
		{"GET", "/v1/audio/speech?input=la&instructions=folk&response_format=mp3&stream=true", "", 200},
		{"GET", "/v1/audio/speech?seed=x", "", 400},
		{"GET", "/v1/audio/speech?input=la&instructions=folk&model=other", "", 404},
		{"POST", "/v1/audio/speech", `{"audio_duration_s":1}`, 400},
		{"POST", "/v1/audio/speech", "", 400},
		{"POST", "/v1/audio/speech", with(`"model":"other"`), 404},
		{"POST", "/v1/audio/speech", strings.Repeat(" ", maxBodyBytes+1), 413},
		{"POST", "/v1/audio/speech", seed(1), 503},
		{"POST", "/v1/audio/speech", seed(2), 500},
		{"POST", "/v1/audio/speech", validBody, 429},
	}
	for _, tt := range tests {
		if tt.status == 429 {
			go func() {
				post(s, seed(3))
				close(waiting)
			}()
			receive(t, full, "song")
		}
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
		if tt.method == "POST" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s %s %.60q: %d, want %d", tt.method, tt.path, tt.body, w.Code, tt.status)
		}
		if err := validate(router, r, w); err != nil {
			t.Errorf("%s %s %.60q: %v", tt.method, tt.path, tt.body, err)
		}
		if tt.path == "/v1/audio/speech" && tt.status == 200 {
			for name := range w.Header() {
				name = strings.TrimPrefix(name, http.TrailerPrefix)
				if _, ok := headersOfSong[name]; !ok && !slices.Contains([]string{"Content-Type", "Content-Length", "Trailer", "Cache-Control", "X-Accel-Buffering"}, name) {
					t.Errorf("header %s is not in the document", name)
				}
			}
		}
	}
	full <- struct{}{}
	receive(t, waiting, "reply")
	s.drain()
	for _, path := range []string{"/readyz", "/v1/models"} {
		r := httptest.NewRequest("GET", path, nil)
		w := do(s, "GET", path, "")
		if err := validate(router, r, w); w.Code != 503 || err != nil {
			t.Errorf("%s: %d, %v", path, w.Code, err)
		}
	}
	t.Logf("%d replies", len(tests)+2)
}

// validate holds a reply against the document.
func validate(router routers.Router, r *http.Request, w *httptest.ResponseRecorder) error {
	route, parameters, err := router.FindRoute(r)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route},
		Status:                 w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   w.Header().Get("Content-Type") == "text/event-stream", // see TestOpenAPIEvents
		},
	})
}

// TestOpenAPIEvents holds the events of streams against their schemas.
func TestOpenAPIEvents(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	doc, _ := document(t, s)
	good := events(t, post(s, with(`"stream_format":"sse"`)).Body)
	sent, goOn := make(chan struct{}, 1), make(chan error, 1)
	goOn <- errors.New("out of tune")
	s, _ = newTestServer(t, Config{}, &fakeSinger{song: pieces(sent, goOn)})
	bad := events(t, post(s, with(`"stream_format":"sse"`)).Body)
	seen := map[string]int{}
	for _, event := range slices.Concat(good, bad) {
		name := map[any]string{"speech.audio.delta": "AudioDelta", "speech.audio.done": "AudioDone", "error": "StreamError"}[event["type"]]
		seen[name]++
		if err := doc.Components.Schemas[name].Value.VisitJSON(event, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if seen["AudioDelta"] < 2 || seen["AudioDone"] != 1 || seen["StreamError"] != 1 || len(seen) != 3 {
		t.Errorf("events %v", seen)
	}
}

// TestOpenAPIRequests makes bodies at random, good and bad, and compares the verdict of
// the document with the server's.
func TestOpenAPIRequests(t *testing.T) {
	s, _ := newTestServer(t, Config{Aliases: []string{"tts-1"}}, &fakeSinger{})
	_, router := document(t, s)
	rnd := rand.New(rand.NewPCG(1, 2))
	// Values of every kind for every field: most of them wrong for it.
	values := []string{`null`, `true`, `false`, `0`, `1`, `-1`, `1.5`, `30`, `100`, `8000`, `44100`, `96001`, `1e3`, `18446744073709551615`,
		`""`, `" "`, `"x"`, `"la"`, `"wav"`, `"flac"`, `"pcm"`, `"aac"`, `"audio"`, `"sse"`, `"friendly"`, `"alloy"`, `"tts-1"`, `{}`, `[]`, `[1]`}
	names := []string{"model", "input", "lyrics", "instructions", "prompt", "audio_duration", "duration", "max_new_tokens", "seed",
		"steps", "num_inference_steps", "guidance_scale", "response_format", "sample_rate", "stream", "stream_format",
		"instrumental", "prompt_mode", "voice", "speed", "temperature", "unknown"}
	verdicts := map[bool]int{}
	for range 1500 {
		members := []string{}
		base := map[string]string{"input": `"la"`, "instructions": `"folk"`}
		if rnd.IntN(4) == 0 {
			delete(base, []string{"input", "instructions"}[rnd.IntN(2)])
		}
		for range rnd.IntN(3) {
			base[names[rnd.IntN(len(names))]] = values[rnd.IntN(len(values))]
		}
		for name, value := range base {
			members = append(members, fmt.Sprintf("%q:%s", name, value))
		}
		slices.Sort(members)
		body := "{" + strings.Join(members, ",") + "}"

		r := httptest.NewRequest("POST", "/v1/audio/speech", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		route, parameters, err := router.FindRoute(r)
		if err != nil {
			t.Fatal(err)
		}
		err = openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route})
		w := post(s, body)
		good := w.Code == http.StatusOK
		verdicts[good]++
		// What one field says about another is beyond the document.
		conflict := strings.Contains(w.Body.String(), "conflicting_parameters") || strings.Contains(w.Body.String(), "does not fit the response_format")
		if (err == nil) != good && !conflict {
			t.Errorf("%s: the document says %v, the server %d %s", body, err, w.Code, w.Body)
		}
	}
	if verdicts[true] < 300 || verdicts[false] < 300 {
		t.Errorf("too few bodies of a kind: %v", verdicts)
	}
	t.Logf("%d bodies taken, %d refused", verdicts[true], verdicts[false])
}
