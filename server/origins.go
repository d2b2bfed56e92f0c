package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// checkOrigins refuses what cannot be the origin of a page.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		u, err := url.Parse(o)
		if o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o) {
			return fmt.Errorf("CORS origin %q is not of the form https://example.org", o)
		}
	}
	return nil
}

// allows tells whether pages of an origin may call the server.
func (s *Server) allows(origin string) bool {
	allowed := s.config.CORSOrigins
	return origin != "" && (slices.Contains(allowed, origin) || slices.Contains(allowed, "*"))
}

// cors lets pages of the allowed origins call the server. Without any it does nothing,
// and browsers keep pages of other sites away.
func (s *Server) cors(c *gin.Context) {
	if len(s.config.CORSOrigins) == 0 {
		return
	}
	c.Writer.Header().Add("Vary", "Origin")
	origin := c.GetHeader("Origin")
	if !s.allows(origin) {
		return
	}
	c.Header("Access-Control-Allow-Origin", origin)
	c.Header("Access-Control-Expose-Headers", strings.Join(exposedHeaders, ", "))
	if isPreflight(c.Request) {
		c.Header("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE")
		c.Header("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, "+requestIDHeader)
		c.Header("Access-Control-Max-Age", "600")
		c.AbortWithStatus(http.StatusNoContent)
	}
}

// isPreflight tells a browser's question whether a page may call from other requests.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// checkGet refuses what would be dropped silently, and songs that a page of another site
// asks for behind its reader's back: for an address alone no browser asks first, as it
// does for JSON. Browsers tell where a request comes from wherever pages of others could
// do harm: over HTTPS and on the machine itself.
func (s *Server) checkGet(w http.ResponseWriter, r *http.Request) *apiError {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		return newError(http.StatusBadRequest, badRequest, "invalid_request",
			"a GET has no body here; send the fields in the query, or POST them as JSON")
	}
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	foreign := site == "cross-site" || site == "same-site"
	if site == "" && origin != "" { // an old browser, or one that reads plain HTTP
		u, err := url.Parse(origin)
		foreign = err != nil || u.Host != r.Host
	}
	if foreign && !s.allows(origin) {
		return newError(http.StatusForbidden, badRequest, "origin_not_allowed",
			"a page of another site asks for this song and may not; the operator can allow the page's origin, and the audio element needs the attribute crossorigin then")
	}
	return nil
}
