package server

import (
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
	release, refusal := s.admit()
	if refusal != nil {
		writeError(w, refusal)
		return
	}
	defer release()

	song, err := s.sing(r.Context(), m, speech.Song)
	if err == nil {
		err = s.writeSong(w, song, speech.Format)
	}
	switch {
	case err == nil:
	case r.Context().Err() != nil && !errors.Is(err, errDraining):
		// The client is gone, and its song with it.
	default:
		e := errSong(speech, err)
		if e.status >= http.StatusInternalServerError {
			s.log.Error("song failed", "error", err, "request_id", w.Header().Get(requestIDHeader))
		}
		writeError(w, e)
	}
}
