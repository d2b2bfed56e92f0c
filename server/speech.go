package server

import (
	"context"
	"errors"
	"net/http"

	"skald/host/engine"
	"skald/server/request"
)

// speech is POST /v1/audio/speech.
func (s *Server) speech(w http.ResponseWriter, r *http.Request) {
	m, refusal := s.ready()
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	body, refusal := s.readBody(w, r)
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	speech, problems := request.Parse(body, s.rules(m))
	if len(problems) > 0 {
		s.writeError(w, errProblems(problems))
		return
	}
	release, refusal := s.admit(m, callerOf(r.Context()))
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	defer release()

	song := s.metrics.watch()
	a, err := s.answer(w, r, m, speech, song)
	gone := err != nil && clientGone(r.Context(), err)
	song.ended(err, gone)
	if err != nil {
		s.fail(a, err, gone)
	}
}

// answer makes the song of a request and sends it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, m singer, speech request.Speech, song *watch) (*reply, error) {
	info := m.Info()
	a, err := s.newReply(w, r, speech, info)
	if err != nil {
		return a, err
	}
	defer a.close()
	asked := speech.Song
	asked.Progress = song.progress
	asked.Sink = func(samples [2][]float32) error {
		song.sounds(float64(len(samples[0]))/float64(info.SampleRate), speech.Stream)
		return a.take(samples)
	}
	sung, err := s.sing(r.Context(), m, asked)
	if a.broken {
		return a, errReader // which has also ended the request's context
	}
	if err != nil {
		return a, err
	}
	song.progress(engine.Progress{Stage: engine.StageEncode})
	if err := a.end(); err != nil {
		return a, err
	}
	song.sung(a.timings(sung))
	return a, a.finish(sung)
}

// clientGone tells the end of a song without a listener from others.
func clientGone(request context.Context, err error) bool {
	return errors.Is(err, errReader) || request.Err() != nil && !errors.Is(err, errDraining)
}

// fail ends a reply whose song came to nothing, or only to a part.
func (s *Server) fail(a *reply, err error, gone bool) {
	id := a.w.Header().Get(requestIDHeader)
	e := errSong(a.speech, err)
	if !gone && e.status >= http.StatusInternalServerError {
		s.log.Error("song failed", "error", err, "request_id", id)
	}
	switch {
	case a.begun:
		s.log.Info("reply broken off", "error", err, "request_id", id)
		if !gone {
			s.metrics.errors.WithLabelValues(e.Code).Inc()
		}
		a.fail(e)
	case !gone:
		s.writeError(a.w, e)
	}
}
