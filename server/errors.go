package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"skald/host/engine"
	"skald/server/jobs"
	"skald/server/request"
)

// apiError is an answer other than success: OpenAI's error object, with the problems of
// the body beside it.
type apiError struct {
	status     int
	retryAfter time.Duration // 0: no such header
	noRetry    bool          // the same request will fail again

	Message  string            `json:"message"`
	Type     string            `json:"type"`
	Param    *string           `json:"param"`
	Code     string            `json:"code"`
	Problems []request.Problem `json:"problems"` // never nil, so that clients see a list
}

// errorReply is the body of such an answer.
type errorReply struct {
	Error *apiError `json:"error"`
}

func newError(status int, kind, code, message string) *apiError {
	return &apiError{status: status, Type: kind, Code: code, Message: message, Problems: []request.Problem{}}
}

// badRequest is the type of all errors that are the caller's.
const badRequest = "invalid_request_error"

func errNoRoute(r *http.Request) *apiError {
	return newError(http.StatusNotFound, badRequest, "not_found",
		fmt.Sprintf("there is no %s; songs are made by POST /v1/audio/speech", limit(r.URL.Path)))
}

func errNoMethod(r *http.Request, allowed string) *apiError {
	if isPreflight(r) {
		return newError(http.StatusMethodNotAllowed, badRequest, "method_not_allowed", fmt.Sprintf(
			"pages of %s may not call this server; its operator can allow their origin", limit(r.Header.Get("Origin"))))
	}
	return newError(http.StatusMethodNotAllowed, badRequest, "method_not_allowed",
		fmt.Sprintf("%s takes %s, not %s", limit(r.URL.Path), allowed, limit(r.Method)))
}

func errUnavailable(code, message string) *apiError {
	e := newError(http.StatusServiceUnavailable, "server_error", code, message)
	e.retryAfter = 5 * time.Second
	return e
}

func errDrain() *apiError {
	return errUnavailable("draining", "the server is shutting down and takes no more songs; try another one")
}

// errProblems is the error of a body. A name of a model that does not exist is a 404
// when nothing else is wrong.
func errProblems(problems []request.Problem) *apiError {
	first := problems[0]
	status, message := http.StatusBadRequest, first.Message
	if len(problems) == 1 && first.Code == request.ModelNotFound {
		status = http.StatusNotFound
	}
	if len(problems) > 1 {
		messages := make([]string, len(problems))
		for i, p := range problems {
			messages[i] = p.Message
		}
		message = fmt.Sprintf("%d problems: %s", len(problems), strings.Join(messages, "; "))
	}
	e := newError(status, badRequest, string(first.Code), message)
	if first.Pointer != "" {
		e.Param = &first.Param
	}
	e.Problems = problems
	return e
}

// errSong is the error of a song that was begun.
func errSong(speech request.Speech, err error) *apiError {
	if f, ok := errors.AsType[*jobs.FailedError](err); ok { // of a worker, in these very terms
		e := newError(f.Status, f.Type, f.Code, f.Message)
		e.noRetry = f.NoRetry
		if f.Status == http.StatusServiceUnavailable {
			e.retryAfter = 5 * time.Second
		}
		return e
	}
	if full := (*jobs.FullError)(nil); errors.Is(err, jobs.ErrNoWorker) || errors.Is(err, jobs.ErrNoAudio) || errors.As(err, &full) {
		return errUnavailable("no_worker", "the song could not be had from a worker: "+err.Error()+"; try again soon")
	}
	if errors.Is(err, errDraining) || errors.Is(err, engine.ErrClosed) {
		return errUnavailable("draining", "the server shut down before the song was finished; try another one")
	}
	if errors.Is(err, errSongTimeout) {
		e := newError(http.StatusServiceUnavailable, "server_error", "song_timeout",
			"the song was not finished in the time that this server gives one; try a shorter song, or later")
		e.noRetry = true // at once it would take as long
		return e
	}
	if e, ok := errors.AsType[*reopenError](err); ok {
		return errReopen(e)
	}
	if _, ok := errors.AsType[*engine.RequestError](err); ok {
		return errProblems(speech.Problems(err))
	}
	if _, ok := errors.AsType[*engine.MemoryError](err); ok {
		return errUnavailable("out_of_memory", "out of memory: "+err.Error()+"; try a shorter song, or later")
	}
	if _, ok := errors.AsType[*engine.NumericError](err); ok {
		e := newError(http.StatusInternalServerError, "server_error", "numeric_failure",
			"no song came of this: "+err.Error()+"; another seed may do")
		e.noRetry = true
		return e
	}
	return errInternal()
}

// errInternal keeps what happened for the log.
func errInternal() *apiError {
	return newError(http.StatusInternalServerError, "server_error", "internal_error",
		"the server failed; its log tells more under this request's X-Request-Id")
}

// writeError answers with an error.
func (s *Server) writeError(w http.ResponseWriter, e *apiError) {
	s.metrics.errors.WithLabelValues(e.Code).Inc()
	h := w.Header()
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.retryAfter+time.Second-1)/time.Second)))
	}
	if e.noRetry {
		h.Set("X-Should-Retry", "false") // OpenAI's clients try every 500 again
	}
	writeJSON(w, e.status, errorReply{e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of ours that is not JSON
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_, _ = w.Write(append(body, '\n'))
}

// limit shortens what a caller sent for a message.
func limit(s string) string {
	const most = 200 // bytes
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
