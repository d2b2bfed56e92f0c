package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"skald/server/request"
)

const maxBodyBytes = 1 << 20

// patience bounds how long a client may take, so that slow ones do not hold memory and
// places in the queue for ever.
type patience struct {
	head  time.Duration // for the head of a request
	body  time.Duration // for the whole body of a request
	reply time.Duration // for reading a reply, and so much more as its size takes at rate
	rate  int           // bytes a second; 16-bit stereo plays at 172 KiB/s
}

var defaultPatience = patience{head: 10 * time.Second, body: 30 * time.Second, reply: 30 * time.Second, rate: 32 << 10}

// readBody takes the JSON body of a request.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *apiError) {
	if refusal := checkHeaders(r); refusal != nil {
		return nil, refusal
	}
	tooLarge := newError(http.StatusRequestEntityTooLarge, badRequest, "request_too_large",
		fmt.Sprintf("the body is larger than %d bytes", maxBodyBytes))
	if r.ContentLength > maxBodyBytes {
		w.Header().Set("Connection", "close")
		return nil, tooLarge
	}
	// net/http lifts deadlines itself: this one after the whole body, to watch the connection
	// for the client's leaving. What has none, as in tests, needs none.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.patience.body))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err == nil {
		return body, nil
	}
	w.Header().Set("Connection", "close")
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, newError(http.StatusBadRequest, badRequest, "body_timeout",
			fmt.Sprintf("the body did not arrive within %v", s.patience.body))
	}
	return nil, newError(http.StatusBadRequest, badRequest, "incomplete_body", "the body could not be read to its end")
}

// checkHeaders refuses what would otherwise be dropped silently or misread.
func checkHeaders(r *http.Request) *apiError {
	if len(r.URL.RawQuery) > 0 {
		return newError(http.StatusBadRequest, badRequest, string(request.UnknownField),
			fmt.Sprintf("the URL has a query, %q, which would have no effect; every field goes into the JSON body", limit(r.URL.RawQuery)))
	}
	unsupported := func(message string) *apiError {
		return newError(http.StatusUnsupportedMediaType, badRequest, "unsupported_media_type", message)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return unsupported(fmt.Sprintf("Content-Encoding %q is not supported; send the body as it is", limit(encoding)))
	}
	contentType := r.Header.Get("Content-Type")
	if contentType == "" {
		// Tools may leave it out, but a web page of another site must not: with
		// application/json its browser asks first, and CORS is off.
		if r.Header.Get("Origin") == "" {
			return nil
		}
		return unsupported("send Content-Type: application/json")
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" {
		return unsupported(fmt.Sprintf("Content-Type %q is not supported; send application/json", limit(contentType)))
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return unsupported(fmt.Sprintf("charset %q is not supported; JSON is UTF-8", limit(charset)))
	}
	return nil
}
