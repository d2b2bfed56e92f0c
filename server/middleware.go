package server

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

const requestIDHeader = "X-Request-Id"

// logRequest names the request, with the caller's own X-Request-Id when that is fit for
// a log, and writes one line about it when it ends. Successful probes are logged at
// debug level: they come every few seconds.
func (s *Server) logRequest(c *gin.Context) {
	start := time.Now()
	id := c.GetHeader(requestIDHeader)
	if !validRequestID(id) {
		id = "req_" + rand.Text()
	}
	c.Header(requestIDHeader, id)

	finished := false
	defer func() { // also when the connection is broken off by a panic
		status, level := c.Writer.Status(), slog.LevelInfo
		if c.Request.Context().Err() != nil && !c.Writer.Written() {
			status = statusClientGone
		}
		route := c.FullPath() // "" for an unknown path, which is not repeated here
		if (route == "/healthz" || route == "/readyz" || route == "/metrics") && status == http.StatusOK {
			level = slog.LevelDebug
		}
		took := time.Since(start)
		s.metrics.request(route, status, took)
		facts := []any{
			"method", limit(c.Request.Method), "route", route, "status", status,
			"duration", took, "bytes", max(c.Writer.Size(), 0),
		}
		if !finished {
			facts = append(facts, "broken_off", true)
		}
		s.log.Log(c.Request.Context(), level, "request", append(facts, "request_id", id)...)
	}()
	c.Next()
	finished = true
}

// statusClientGone stands in the log for a request whose client did not wait.
const statusClientGone = 499

func validRequestID(id string) bool {
	const most = 128
	for _, r := range id {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r)) {
			return false
		}
	}
	return id != "" && len(id) <= most
}

// recoverPanic answers 500, or breaks the connection off when the reply has begun, and
// the server lives on.
func (s *Server) recoverPanic(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v)
		}
		s.log.Error("panic", "value", v, "request_id", c.Writer.Header().Get(requestIDHeader), "stack", string(debug.Stack()))
		c.Abort()
		if c.Writer.Written() {
			panic(http.ErrAbortHandler)
		}
		s.writeError(c.Writer, errInternal())
	}()
	c.Next()
}
