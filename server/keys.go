package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// caller is the digest of the key that a request came with; the zero caller is anyone,
// when no keys are asked for.
type caller [sha256.Size]byte

// keyRing holds digests of the keys: equal in length, so that comparing them takes the
// same time whatever was sent.
type keyRing []caller

func newKeyRing(keys []string) (keyRing, error) {
	ring := make(keyRing, len(keys))
	for i, k := range keys {
		if k == "" || strings.TrimSpace(k) != k {
			return nil, fmt.Errorf("API key %d is empty or has white space around it", i+1)
		}
		ring[i] = sha256.Sum256([]byte(k))
	}
	return ring, nil
}

// find tells whose key it is.
func (ring keyRing) find(key string) (c caller, ok bool) {
	c = sha256.Sum256([]byte(key))
	found := 0
	for i := range ring {
		found |= subtle.ConstantTimeCompare(c[:], ring[i][:])
	}
	return c, found == 1
}

// SetAPIKeys replaces the keys that are accepted, from the next request on. At least
// one must be left if there was one.
func (s *Server) SetAPIKeys(keys []string) error {
	ring, err := newKeyRing(keys)
	if err != nil {
		return err
	}
	if len(ring) == 0 && len(*s.keys.Load()) > 0 {
		return errors.New("without any API key the server would be open to everyone")
	}
	s.keys.Store(&ring)
	return nil
}

// callerKey is where a request's context holds its caller.
type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// requireKey lets a request pass that has a key, or every one when there are none.
func (s *Server) requireKey(c *gin.Context) {
	ring := *s.keys.Load()
	if len(ring) == 0 {
		return
	}
	scheme, key, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		if who, ok := ring.find(strings.TrimSpace(key)); ok {
			c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), callerKey{}, who))
			return
		}
	}
	message := "this server asks for an API key: send it as Authorization: Bearer KEY"
	if key != "" {
		message = "the API key is wrong, or not sent as Authorization: Bearer KEY"
	}
	c.Abort()
	c.Header("WWW-Authenticate", "Bearer")
	s.writeError(c.Writer, newError(http.StatusUnauthorized, badRequest, "invalid_api_key", message))
}
