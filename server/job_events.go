package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"skald/server/jobs"
)

// heartbeat keeps proxies from taking a quiet stream of events for a dead one.
const heartbeat = 15 * time.Second

// jobEvents is GET /v1/music/jobs/{id}/events. Every event is the whole job as it is then,
// so that a reader who missed some has lost nothing once he has the next. Its id names
// what it shows: a reader who comes back with it hears of it again only if it changed.
func (s *Server) jobEvents(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string) {
	if !s.takesQuery(w, r) {
		return
	}
	changed, stop := store.Watch(id) // before the first look
	defer stop()
	j, ok := s.findJob(w, r, store, id)
	if !ok {
		return
	}
	last := r.Header.Get("Last-Event-ID")
	if j.Status.Ended() && last == eventID(j) {
		w.WriteHeader(http.StatusNoContent) // tells browsers not to come back
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	status := jobs.Status("")
	for {
		text := ": alive\n\n"
		if id := eventID(j); id != last {
			kind := "progress"
			if j.Status != status {
				kind = "status"
			}
			data, err := json.Marshal(describeJob(j))
			if err != nil {
				panic(err) // a value of ours that is not JSON
			}
			text = fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", kind, id, data)
			last, status = id, j.Status
		}
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(s.patience.reply)) // tests have none
		if _, err := fmt.Fprint(w, text); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		if j.Status.Ended() {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.songs.Done(): // the server stops
			return
		case <-beat.C:
		case <-changed:
		}
		next, err := store.Get(r.Context(), id, owner(r))
		if err != nil {
			_, _ = fmt.Fprintf(w, "event: deleted\ndata: {\"id\":%q}\n\n", j.ID)
			return
		}
		j = next
	}
}

// eventID names the state of a job: the change of its record, and how far it is since.
func eventID(j jobs.Job) string {
	n := 0
	if j.Progress != nil {
		n = j.Progress.Sequence
	}
	return fmt.Sprintf("%d.%d.%d", j.Revision, n, j.Position)
}
