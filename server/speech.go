package server

import (
	"context"
	"errors"
	"net/http"

	"skald/host/engine"
	"skald/server/request"
)

// speech is POST /v1/audio/speech, and GET with the same fields in the query, for audio
// elements of web pages and whatever else can only fetch an address.
func (s *Server) speech(w http.ResponseWriter, r *http.Request) {
	m, refusal := s.ready()
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	speech, refusal := s.understand(w, r, s.rules(m))
	if refusal != nil {
		s.writeError(w, refusal)
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

// understand takes the fields of a request from its body or, if it has none by its
// method, from its query.
func (s *Server) understand(w http.ResponseWriter, r *http.Request, rules request.Rules) (request.Speech, *apiError) {
	var speech request.Speech
	var problems []request.Problem
	if r.Method == http.MethodGet {
		if refusal := s.checkGet(w, r); refusal != nil {
			return speech, refusal
		}
		speech, problems = request.ParseQuery(r.URL.RawQuery, rules)
	} else {
		body, refusal := s.readBody(w, r)
		if refusal != nil {
			return speech, refusal
		}
		speech, problems = request.Parse(body, rules)
	}
	if len(problems) > 0 {
		return speech, errProblems(problems)
	}
	return speech, nil
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
