package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// New is a job to be made.
type New struct {
	Spec     Spec
	Owner    string
	Key      string // of idempotency: the same key and Spec give the same job; "": none
	Warnings []string
	Waits    bool // see Record
}

// FullError says that as many jobs wait as may.
type FullError struct{ Waiting int }

func (e *FullError) Error() string {
	return fmt.Sprintf("%d jobs are waiting, as many as may", e.Waiting)
}

// idempotency is the entry of a key: which job was made with it, and of what.
type idempotency struct {
	ID   string `json:"id"`
	Body string `json:"body"` // digest
}

// Create stores a job and puts it in line. When it returns, the job is on disk. With a key
// that was used before, it returns the job of then, or ErrConflict.
func (s *Store) Create(ctx context.Context, n New) (j Job, err error) {
	id := s.nextID()
	r := Record{ID: id, Model: n.Spec.Model, Owner: n.Owner, Status: Queued, Created: s.o.now().UTC(), Warnings: n.Warnings, Waits: n.Waits}
	if n.Key != "" {
		r.Idempotency = digest([]byte(n.Owner + "\x00" + n.Key))
		first, err := s.claim(ctx, r.Idempotency, idempotency{id, digest(mustJSON(&n.Spec))})
		if err != nil {
			return j, err
		}
		if first != id {
			// Usually the job is there. If not, its making was cut off, and goes on here.
			if j, err = s.Get(ctx, first, ""); !errors.Is(err, ErrNotFound) {
				return j, err
			}
			r.ID = first
		}
	}
	if waiting := s.Counts()[Queued]; waiting >= s.o.MaxJobs {
		s.forgetKey(ctx, r.Idempotency)
		return j, &FullError{waiting}
	}
	if err := s.create(ctx, &r, n.Spec); err != nil {
		return j, err
	}
	j, ok := s.index.get(r.ID)
	if !ok {
		return j, ErrNotFound // deleted already
	}
	return j, nil
}

// nextID is later than all ids before, also when the clock is not.
func (s *Store) nextID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.mu.Lock()
	if n := len(s.index.order); n > 0 {
		s.lastID = max(s.lastID, idTime(s.index.order[n-1]))
	}
	s.index.mu.Unlock()
	s.lastID = max(s.lastID+1, s.o.now().UnixMilli())
	return newID(s.lastID)
}

// claim enters a key, or returns the id that was entered with it before.
func (s *Store) claim(ctx context.Context, key string, entry idempotency) (id string, err error) {
	for {
		_, err := s.records.Create(ctx, idemKey+key, mustJSON(&entry))
		if err == nil || !errors.Is(err, jetstream.ErrKeyExists) {
			return entry.ID, err
		}
		e, err := s.records.Get(ctx, idemKey+key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue // deleted just now
		} else if err != nil {
			return "", err
		}
		var before idempotency
		if err := json.Unmarshal(e.Value(), &before); err != nil {
			return "", err
		}
		if before.Body != entry.Body {
			return "", ErrConflict
		}
		return before.ID, nil
	}
}

// create writes a job's parts, the message last: what is in line is complete. Whatever
// fails, nothing is left that would be sung although its caller was told it failed.
func (s *Store) create(ctx context.Context, r *Record, spec Spec) error {
	if spec.SourceJob != "" {
		if err := s.copyCodes(ctx, spec.SourceJob, r.ID); err != nil {
			s.forgetKey(ctx, r.Idempotency)
			return err
		}
	}
	_, err := s.records.Put(ctx, requestKey+r.ID, mustJSON(&spec))
	if err == nil {
		var revision uint64
		revision, err = s.records.Create(ctx, recordKey+r.ID, mustJSON(r))
		if errors.Is(err, jetstream.ErrKeyExists) { // somebody else with the same key
			_, revision, err = s.read(ctx, r.ID)
		}
		if err == nil {
			s.index.put(*r, revision)
			err = s.enqueue(ctx, r)
		}
	}
	if err != nil {
		s.remove(context.WithoutCancel(ctx), r)
		return err
	}
	return nil
}

// enqueue puts a job in line; once if it stands there already.
func (s *Store) enqueue(ctx context.Context, r *Record) error {
	_, err := s.js.Publish(ctx, subjectOf(r), nil)
	if err != nil && strings.Contains(err.Error(), "maximum messages per subject exceeded") {
		return nil // there is no code of its own for it
	}
	return err
}

// forgetKey lets a key of idempotency be used again.
func (s *Store) forgetKey(ctx context.Context, key string) {
	if key != "" {
		s.purge(ctx, idemKey+key)
	}
}

// purge deletes a key. What fails, the janitor does later.
func (s *Store) purge(ctx context.Context, key string) {
	if err := s.records.Purge(ctx, key, jetstream.PurgeTTL(markerTTL)); err != nil {
		s.log.Warn("cannot delete", "key", key, "error", err)
	}
}

// remove deletes everything of a job, the record last: until then the rest is found again.
func (s *Store) remove(ctx context.Context, r *Record) {
	if err := s.queue.Purge(ctx, jetstream.WithPurgeSubject(subjectOf(r))); err != nil {
		s.log.Warn("cannot take a job out of the queue", "id", r.ID, "error", err)
	}
	if r.Song != nil {
		s.removeObject(ctx, r.Song.Object)
		s.removeObject(ctx, codesOf(r.Song.Object))
	}
	s.removeObject(ctx, sourceOf(r.ID))
	s.forgetKey(ctx, r.Idempotency)
	s.purge(ctx, requestKey+r.ID)
	s.purge(ctx, recordKey+r.ID)
	s.index.remove(r.ID)
}

// Delete removes a job and all that belongs to it; a running one ends.
func (s *Store) Delete(ctx context.Context, id string) error {
	r, err := s.update(ctx, id, func(r *Record) error {
		if !r.Status.Ended() {
			r.Status, r.Ended = Cancelled, s.o.now().UTC()
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.remove(ctx, &r)
	return nil
}

// Cancel ends a job; ErrEnded when it has ended.
func (s *Store) Cancel(ctx context.Context, id string) (Record, error) {
	r, err := s.update(ctx, id, func(r *Record) error {
		if r.Status.Ended() {
			return ErrEnded
		}
		r.Status, r.Ended = Cancelled, s.o.now().UTC()
		return nil
	})
	if err == nil {
		if err := s.queue.Purge(ctx, jetstream.WithPurgeSubject(subjectOf(&r))); err != nil {
			s.log.Debug("cannot take a job out of the queue", "id", id, "error", err)
		}
	}
	return r, err
}

// Finish ends a running job's song with what was sung so far. The number of frames is
// kept, so that the song is as long when it has to be begun again.
func (s *Store) Finish(ctx context.Context, id string) (Record, error) {
	j, _ := s.index.get(id)
	return s.update(ctx, id, func(r *Record) error {
		switch {
		case r.Status.Ended():
			return ErrEnded
		case r.Status == Queued:
			return ErrQueued
		case r.FinishAt == 0:
			r.FinishAt = -1
			if j.Progress != nil && j.Progress.Frames > 0 && j.Tries == r.Tries {
				r.FinishAt = j.Progress.Frames
			}
		}
		return nil
	})
}
