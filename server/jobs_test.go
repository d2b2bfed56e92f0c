package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skald/host/engine"
	"skald/server/jobs"
)

// newJobServer is a server with a store and a model that takes up jobs.
func newJobServer(t *testing.T, c Config, m *fakeSinger) *Server {
	t.Helper()
	store, err := jobs.Open(t.Context(), jobs.Options{Dir: t.TempDir(), Sync: time.Minute, Silence: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c.Jobs, c.DrainTimeout = store, time.Nanosecond
	s, _ := newTestServer(t, c, m)
	if err := s.startWorker(m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.drain()
		store.Close()
	})
	return s
}

func postJob(s *Server, body string, header ...string) *httptest.ResponseRecorder {
	return do(s, "POST", "/v1/music/jobs", body, append([]string{"Content-Type", "application/json"}, header...)...)
}

// readJob decodes a job and checks that nothing is in it that the API does not name.
func readJob(t *testing.T, w *httptest.ResponseRecorder, status int) jobObject {
	t.Helper()
	if w.Code != status {
		t.Fatalf("%d %s, expected %d", w.Code, w.Body, status)
	}
	var j jobObject
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		t.Fatal(err)
	}
	return j
}

func awaitJob(t *testing.T, s *Server, id, status string, header ...string) jobObject {
	t.Helper()
	var j jobObject
	for range 3000 {
		if j = readJob(t, do(s, "GET", "/v1/music/jobs/"+id, "", header...), 200); j.Status == status {
			return j
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the job is %s, expected %s", j.Status, status)
	return j
}

func TestJob(t *testing.T) {
	s := newJobServer(t, Config{}, &fakeSinger{})
	w := postJob(s, validBody, "Idempotency-Key", "k")
	j := readJob(t, w, http.StatusAccepted)
	if w.Header().Get("Location") != "/v1/music/jobs/"+j.ID || j.Request == nil || j.Request.Seed != 1<<64-1 || j.Request.MaxNewTokens != 1 {
		t.Errorf("%v, %+v", w.Header(), j.Request)
	}
	if again := readJob(t, postJob(s, validBody, "Idempotency-Key", "k"), http.StatusAccepted); again.ID != j.ID {
		t.Error("the same key gave another job")
	}
	wantError(t, postJob(s, `{"input":"la","prompt":"folk"}`, "Idempotency-Key", "k"), http.StatusConflict, "idempotency_conflict")
	done := awaitJob(t, s, j.ID, "done")
	if done.Percent != 100 || done.Frames != 1 || done.SampleRate != 44100 || len(done.Timings) == 0 || done.Tries != 1 {
		t.Errorf("%+v", done)
	}
	// The same samples as of the direct route, in the formats that lose nothing.
	path := "/v1/music/jobs/" + j.ID + "/audio"
	for _, format := range []string{"wav", "pcm"} {
		direct := post(s, strings.Replace(validBody, "{", fmt.Sprintf(`{"response_format":%q,`, format), 1))
		file := do(s, "GET", path+"?format="+format, "")
		if file.Code != 200 || file.Body.String() != direct.Body.String() || file.Header().Get("Skald-Complete") != "true" {
			t.Errorf("%s: %d, %d bytes, directly %d", format, file.Code, file.Body.Len(), direct.Body.Len())
		}
	}
	part := do(s, "GET", path+"?format=pcm", "", "Range", "bytes=4-11")
	if whole := do(s, "GET", path+"?format=pcm", "").Body.String(); part.Code != http.StatusPartialContent || part.Body.String() != whole[4:12] {
		t.Errorf("a range: %d, %d bytes", part.Code, part.Body.Len())
	}
	for _, format := range []string{"flac", "mp3", "opus"} {
		if w := do(s, "GET", path+"?format="+format, ""); w.Code != 200 || w.Body.Len() < 100 {
			t.Errorf("%s: %d, %d bytes", format, w.Code, w.Body.Len())
		}
	}
	for query, part := range map[string]string{"format=ogg": "format must", "sample_rate=1": "sample_rate must", "x=1": "not a parameter", "format=opus&sample_rate=44100": "48000", "format=wav&format=wav": "twice"} {
		if w := do(s, "GET", path+"?"+query, ""); w.Code != 400 || !strings.Contains(w.Body.String(), part) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	wantError(t, do(s, "POST", "/v1/music/jobs/"+j.ID+"/cancel", ""), http.StatusConflict, "job_ended")
	wantError(t, do(s, "POST", "/v1/music/jobs/"+j.ID+"/finish", ""), http.StatusConflict, "job_ended")

	// Events of an ended job: the state, and nothing more to come back for.
	events := do(s, "GET", "/v1/music/jobs/"+j.ID+"/events", "")
	_, id, _ := strings.Cut(events.Body.String(), "id: ")
	id, _, _ = strings.Cut(id, "\n")
	if again := do(s, "GET", "/v1/music/jobs/"+j.ID+"/events", "", "Last-Event-ID", id); again.Code != http.StatusNoContent {
		t.Errorf("after the last event %q: %d %s", id, again.Code, again.Body)
	}

	if w := do(s, "DELETE", "/v1/music/jobs/"+j.ID, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"deleted":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantError(t, do(s, "GET", path, ""), http.StatusNotFound, "job_not_found")
}

func TestJobRefusals(t *testing.T) {
	s := newJobServer(t, Config{}, &fakeSinger{})
	for body, code := range map[string]string{
		`{"input":"la"}`: "missing_required_parameter",
		`{"input":"la","prompt":"folk","stream":true}`:         "unsupported_value",
		`{"source_job":"job_x"}`:                               "invalid_value",
		`{"input":"la","prompt":"folk","sourcejob":"x"}`:       "unknown_parameter",
		`{"input":"la","prompt":"folk","durations":1}`:         "unknown_parameter",
		`{"input":"la","prompt":"folk","response_format":"x"}`: "invalid_value",
	} {
		wantError(t, postJob(s, body), http.StatusBadRequest, code)
	}
	wantError(t, post(s, `{"input":"la","prompt":"folk","source_job":"job_x"}`), http.StatusBadRequest, "unsupported_parameter")
	off, _ := newTestServer(t, Config{}, &fakeSinger{})
	wantError(t, postJob(off, validBody), http.StatusNotFound, "jobs_off")
}

// TestJobOwners keeps the jobs of one key from another.
func TestJobOwners(t *testing.T) {
	s := newJobServer(t, Config{APIKeys: []string{"a", "b"}}, &fakeSinger{})
	a, b := []string{"Authorization", "Bearer a"}, []string{"Authorization", "Bearer b"}
	j := readJob(t, postJob(s, validBody, a...), http.StatusAccepted)
	awaitJob(t, s, j.ID, "done", a...)
	for _, route := range []string{"GET ", "DELETE ", "GET /audio", "GET /events", "POST /cancel", "POST /finish"} {
		method, rest, _ := strings.Cut(route, " ")
		wantError(t, do(s, method, "/v1/music/jobs/"+j.ID+rest, "", b...), http.StatusNotFound, "job_not_found")
	}
	for header, n := range map[string]int{"Bearer a": 1, "Bearer b": 0} {
		var list jobList
		w := do(s, "GET", "/v1/music/jobs", "", "Authorization", header)
		if err := json.NewDecoder(w.Body).Decode(&list); err != nil || len(list.Data) != n {
			t.Errorf("%s sees %d jobs, %v", header, len(list.Data), err)
		}
	}
}

func TestJobFailure(t *testing.T) {
	s := newJobServer(t, Config{}, &fakeSinger{song: func(_ context.Context, r engine.Request) (*engine.Song, error) {
		if r.Seed == 1 {
			return nil, &engine.NumericError{Stage: engine.StageFlow, What: "NaN"}
		}
		return nil, errors.New("broken")
	}})
	j := readJob(t, postJob(s, `{"input":"la","prompt":"folk","seed":1}`), http.StatusAccepted)
	if f := awaitJob(t, s, j.ID, "failed"); f.Error == nil || f.Error.Code != "numeric_failure" || f.Tries != 1 {
		t.Errorf("%+v after %d tries", f.Error, f.Tries)
	}
	wantError(t, do(s, "GET", "/v1/music/jobs/"+j.ID+"/audio", ""), http.StatusConflict, "no_audio")
}

// TestJobEvents reads a running job's events over a connection, and its audio meanwhile.
func TestJobEvents(t *testing.T) {
	end := make(chan struct{})
	s := newJobServer(t, Config{}, &fakeSinger{song: func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		song := testSong(r)
		if err := r.Sink(song.Samples); err != nil {
			return nil, err
		}
		r.Progress(engine.Progress{Stage: engine.StageAR, Frames: 1, MaxFrames: 9, ETA: time.Second, Elapsed: time.Second})
		select {
		case <-end:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		return testSong(r), nil
	}})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	j := readJob(t, postJob(s, validBody), http.StatusAccepted)
	reply, err := http.Get(server.URL + "/v1/music/jobs/" + j.ID + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var now jobObject
		if err := json.Unmarshal([]byte(data), &now); err != nil {
			t.Fatal(err)
		}
		seen[now.Status] = true
		if now.Stage == "ar" && now.AudioSeconds > 0 && !seen["heard"] {
			seen["heard"] = true
			if now.ETA == nil || now.Percent != 50 {
				t.Errorf("ETA %v, %v %%", now.ETA, now.Percent)
			}
			w := do(s, "GET", "/v1/music/jobs/"+j.ID+"/audio?format=pcm", "")
			if w.Code != 200 || w.Header().Get("Skald-Complete") != "false" || w.Body.Len() != 4*3072 {
				t.Errorf("the audio so far: %d %v, %d bytes", w.Code, w.Header(), w.Body.Len())
			}
			close(end)
		}
	}
	if !seen["running"] || !seen["heard"] || !seen["done"] {
		t.Errorf("the events showed %v", seen)
	}
}
