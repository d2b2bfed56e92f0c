package server

import (
	"fmt"
	"net/http"

	"skald/host/compute"
)

// health is the answer of /healthz.
type health struct {
	Status  string `json:"status"` // ok, stalled
	Message string `json:"message,omitempty"`
}

// healthz answers 200 while the process is worth keeping: also during loading, and not
// when songs have stopped making progress.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	if since, stalled := s.stalled(); stalled {
		writeJSON(w, http.StatusServiceUnavailable, health{"stalled",
			fmt.Sprintf("there are songs and there has been no progress for %.0f s", since.Seconds())})
		return
	}
	writeJSON(w, http.StatusOK, health{Status: "ok"})
}

// readiness is the answer of /readyz.
type readiness struct {
	Status string `json:"status"` // ready, loading, draining
	Model  string `json:"model,omitempty"`

	// While loading.
	Stage          string   `json:"stage,omitempty"` // the component, such as language_model
	Percent        *float64 `json:"percent,omitempty"`
	Bytes          int64    `json:"bytes,omitempty"`
	TotalBytes     int64    `json:"total_bytes,omitempty"`
	BytesPerSecond *float64 `json:"bytes_per_second,omitempty"`
	// What the device's sensors say, where it has any.
	Device *compute.Sensors `json:"device,omitempty"`
}

// readyz answers 200 when songs are accepted.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	m, p, draining := s.singer, s.loading, s.draining
	s.mu.Unlock()
	switch {
	case draining:
		writeJSON(w, http.StatusServiceUnavailable, readiness{Status: "draining"})
	case m == nil:
		stage, done := p.Component, percent(p)
		if stage == "" {
			stage = "starting"
		}
		w.Header().Set("Retry-After", "1")
		var sensors *compute.Sensors
		if p.Sensors != (compute.Sensors{}) {
			sensors = &p.Sensors
		}
		writeJSON(w, http.StatusServiceUnavailable, readiness{
			Status: "loading", Device: sensors, Stage: stage, Percent: &done,
			Bytes: p.Bytes, TotalBytes: p.Total, BytesPerSecond: &p.BytesPerSecond,
		})
	default:
		writeJSON(w, http.StatusOK, readiness{Status: "ready", Model: m.Info().Name})
	}
}
