package server

import (
	"context"
	"errors"
	"net/http"

	"skald/server/request"
)

// speech is POST /v1/audio/speech.
func (s *Server) speech(w http.ResponseWriter, r *http.Request) {
	m, refusal := s.ready()
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	body, refusal := s.readBody(w, r)
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	speech, problems := request.Parse(body, s.rules(m))
	if len(problems) > 0 {
		writeError(w, errProblems(problems))
		return
	}
	release, refusal := s.admit(m, callerOf(r.Context()))
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	defer release()

	if a, err := s.answer(w, r, m, speech); err != nil {
		s.fail(a, r.Context(), err)
	}
}

// answer makes the song of a request and sends it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, m singer, speech request.Speech) (*reply, error) {
	a, err := newReply(w, r, s.patience, speech, m.Info())
	if err != nil {
		return a, err
	}
	song := speech.Song
	song.Sink = a.take
	sung, err := s.sing(r.Context(), m, song)
	if err != nil {
		return a, err
	}
	return a, a.finish(sung)
}

// fail ends a reply whose song came to nothing, or only to a part.
func (s *Server) fail(a *reply, ctx context.Context, err error) {
	id := a.w.Header().Get(requestIDHeader)
	e := errSong(a.speech, err)
	gone := errors.Is(err, errReader) || ctx.Err() != nil && !errors.Is(err, errDraining)
	if !gone && e.status >= http.StatusInternalServerError {
		s.log.Error("song failed", "error", err, "request_id", id)
	}
	switch {
	case a.begun:
		s.log.Info("reply broken off", "error", err, "request_id", id)
		a.fail(e)
	case !gone:
		writeError(a.w, e)
	}
}
