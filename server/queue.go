package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"skald/host/engine"
	"skald/server/jobs"
)

// SetLoading tells how far loading is, for /readyz and for the message of a 503.
func (s *Server) SetLoading(p engine.LoadProgress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading, s.loadingAt = p, time.Now()
}

// SetEngine gives the server its loaded model, and songs are accepted from now on, jobs
// too if it keeps any. The caller closes the engine after Run has returned.
func (s *Server) SetEngine(e *engine.Engine) error {
	var m singer = e
	if s.config.IdleUnload > 0 {
		r := newResting(e, s.config.IdleUnload, s.log, s.config.Open)
		s.mu.Lock()
		s.resting = r
		s.mu.Unlock()
		m = r
	}
	if s.config.Jobs != nil {
		if err := s.startWorker(m); err != nil {
			return err
		}
	}
	s.setSinger(m)
	return nil
}

// SetGateway lets workers elsewhere make the songs, instead of an engine.
func (s *Server) SetGateway(g *jobs.Gateway) { s.setSinger(g) }

func (s *Server) setSinger(m singer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.singer = m
	s.loadedAt = time.Now()
}

// ready returns the model, or why there is none.
func (s *Server) ready() (singer, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return nil, errDrain()
	case s.singer == nil:
		message := "the model is being loaded"
		if s.config.Gateway {
			message = "no worker has been heard of yet"
		}
		if p := s.loading; p.Total > 0 {
			message += fmt.Sprintf(": %s, %.0f %%", p.Component, percent(p))
		}
		return nil, errUnavailable("model_loading", message+"; try again soon")
	}
	return s.singer, nil
}

// errSongTimeout ends a song that takes longer than Config.SongTimeout.
var errSongTimeout = errors.New("the song took too long")

// allPlaces is how many songs can be made at once and may wait.
func (s *Server) allPlaces(m singer) int { return m.Info().Songs + max(s.config.MaxQueue, 0) }

// admit takes a place for a song, which release gives back. A place is held until the
// reply is sent, so that slow readers cannot pile up songs in memory.
func (s *Server) admit(m singer, who caller) (release func(), refusal *apiError) {
	places := s.allPlaces(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(code, message string) (func(), *apiError) {
		e := newError(http.StatusTooManyRequests, "rate_limit_error", code, message)
		e.retryAfter = s.retryAfter()
		return nil, e
	}
	most := s.config.MaxSongsPerKey
	switch {
	case s.draining:
		return nil, errDrain()
	case s.places >= places:
		return refuse("queue_full", fmt.Sprintf("the queue is full: %d songs are being made or waiting; try again later", s.places))
	case most > 0 && who != caller{} && s.placesOf[who] >= most:
		return refuse("key_limit", fmt.Sprintf(
			"%d songs of this API key are being made or waiting, as many as a key may have; try again when one is done", s.placesOf[who]))
	}
	s.places++
	s.placesOf[who]++
	return func() { s.release(who) }, nil
}

func (s *Server) release(who caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places--
	if s.placesOf[who]--; s.placesOf[who] == 0 {
		delete(s.placesOf, who)
	}
	if s.draining && s.places == 0 {
		close(s.idle)
	}
}

// retryAfter guesses when a place gets free: after about one more song.
func (s *Server) retryAfter() time.Duration {
	const shortest, longest = time.Second, time.Minute
	return min(max(s.lastSong, shortest), longest)
}

// sing makes a song and keeps account of it. It ends with the request, with the server
// or with the song's time, and then returns the cause.
func (s *Server) sing(request context.Context, m singer, r engine.Request) (*engine.Song, error) {
	ctx, cancel := context.WithCancelCause(request)
	defer cancel(nil)
	defer context.AfterFunc(s.songs, func() { cancel(context.Cause(s.songs)) })()
	if limit := s.config.SongTimeout; limit > 0 {
		defer time.AfterFunc(limit, func() { cancel(errSongTimeout) }).Stop()
	}

	start := time.Now()
	waiting, running := m.Busy()
	s.mu.Lock()
	if waiting+running == 0 {
		s.busySince = start
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.lastSong = time.Since(start)
		s.mu.Unlock()
	}()

	song, err := m.Sing(ctx, r)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return song, err
}

// drain refuses new songs, waits for the accepted ones, and ends those that take longer
// than Config.DrainTimeout.
func (s *Server) drain() {
	s.mu.Lock()
	songs, worker, loaded := s.places, s.worker, s.singer != nil
	if !s.draining {
		s.draining = true
		if songs == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()

	if loaded { // otherwise there is nothing to wait for, and why is told elsewhere
		s.log.Info("shutting down", "songs", songs, "timeout", s.config.DrainTimeout)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	working := make(chan struct{})
	go func() {
		if worker != nil {
			worker.Stop(ctx)
		}
		close(working)
	}()
	select {
	case <-s.idle:
	case <-ctx.Done():
		s.log.Warn("cancelling songs that are not finished")
	}
	<-working
	s.stopSongs(errDraining)
}

// stalled reports for how long the engine has had songs and made no progress, and
// whether that is too long.
func (s *Server) stalled() (since time.Duration, stalled bool) {
	s.mu.Lock()
	m, last := s.singer, s.busySince
	if s.loadingAt.After(last) {
		last = s.loadingAt
	}
	s.mu.Unlock()
	if m == nil {
		return 0, false
	}
	if waiting, running := m.Busy(); waiting+running == 0 {
		return 0, false
	}
	if p := m.LastProgress(); p.After(last) {
		last = p
	}
	since = time.Since(last)
	return since, since > s.config.StallAfter
}

// percent of the bytes that are loaded.
func percent(p engine.LoadProgress) float64 {
	if p.Total <= 0 {
		return 0
	}
	return min(100*float64(p.Bytes)/float64(p.Total), 100)
}
