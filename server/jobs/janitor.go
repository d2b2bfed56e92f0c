package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	houseEvery = 30 * time.Second
	// young jobs may still be in the making.
	young = 10 * time.Second
	// A clock that moves ahead of the time that passed by so much was set.
	jump = time.Minute
)

// keepHouse deletes what is too old or too much, and puts jobs back in line that fell out
// of it, until the store closes.
func (s *Store) keepHouse() {
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	wall, passed := s.o.now(), time.Now()
	for {
		select {
		case <-s.closing.Done():
			return
		case <-tick.C:
		}
		now := s.o.now()
		s.watchClock(now.Round(0).Sub(wall.Round(0)), time.Since(passed))
		wall, passed = now, time.Now()
		s.retain(s.closing, now)
		if err := s.requeue(s.closing, now); err != nil && s.closing.Err() == nil {
			s.log.Warn("cannot look after the queue", "error", err)
		}
	}
}

// watchClock notices a clock that was set ahead, which would make all jobs old at once:
// it is not counted. Set back, it only makes them stay longer.
func (s *Store) watchClock(wall, passed time.Duration) {
	if ahead := wall - passed; ahead > jump {
		s.skew += ahead
		s.log.Warn("the clock jumped ahead; ended jobs are not deleted for that", "by", ahead)
	}
}

// retain deletes ended jobs that are too old, and the oldest ones while songs take too
// much room.
func (s *Store) retain(ctx context.Context, now time.Time) {
	var ended []Record
	bytes := int64(0)
	for _, r := range s.index.records() {
		if r.Status.Ended() {
			ended = append(ended, r)
		}
		if r.Song != nil {
			bytes += r.Song.Bytes
		}
	}
	slices.SortStableFunc(ended, func(a, b Record) int { return a.Ended.Compare(b.Ended) })
	for i := range ended {
		r := &ended[i]
		old := now.Sub(r.Ended)-s.skew > s.o.Keep
		if r.Waits {
			old = now.Sub(r.Ended) > 2*s.o.Silence // handed over, or nobody waited
		}
		if !old && (r.Song == nil || bytes <= s.o.MaxBytes) {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		s.remove(ctx, r)
		if r.Song != nil {
			bytes -= r.Song.Bytes
		}
		s.log.Debug("job deleted", "id", r.ID, "age", now.Sub(r.Ended))
	}
}

// requeue puts jobs in line that have not ended and whose message is gone.
func (s *Store) requeue(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	waiting := s.index.records()
	info, err := s.queue.Info(ctx, jetstream.WithSubjectFilter(queueSubject+">"))
	if err != nil {
		return err
	}
	for i := range waiting {
		r := &waiting[i]
		if r.Status.Ended() || info.State.Subjects[subjectOf(r)] > 0 || now.Sub(r.Created).Abs() < young {
			continue
		}
		if j, ok := s.index.get(r.ID); !ok || j.Status.Ended() {
			continue
		}
		if err := s.enqueue(ctx, r); err != nil {
			return err
		}
		s.log.Warn("a job was not in the queue and is put there again", "id", r.ID)
	}
	return nil
}

// mend brings in order what the last run left: it says which songs are lost, deletes what
// belongs to no job, and puts jobs back in line.
func (s *Store) mend(ctx context.Context) error {
	records := map[string]*Record{}
	all := s.index.records() // before the objects: a song is stored before its record says so
	for i := range all {
		records[all[i].ID] = &all[i]
	}
	objects, err := s.songs.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return err
	}
	stored := map[string]bool{}
	for _, o := range objects {
		stored[o.Name] = true
		id, _, _ := strings.Cut(o.Name, "/")
		r := records[id]
		used := r != nil && (!r.Status.Ended() || r.Song != nil && strings.HasPrefix(o.Name, r.Song.Object) || o.Name == sourceOf(id))
		if !used && s.o.now().Sub(o.ModTime) > young && s.server != nil {
			if r == nil {
				s.log.Error("a song without a job is deleted: the disk has lost the job's record", "object", o.Name)
			}
			s.removeObject(ctx, o.Name)
		}
	}
	lost := 0
	for _, r := range records {
		if r.Status != Done || r.Waits || stored[r.Song.Object] && stored[codesOf(r.Song.Object)] {
			continue
		}
		lost++
		s.log.Error("the song of a job is lost", "id", r.ID)
		_, err := s.update(ctx, r.ID, func(r *Record) error {
			if r.Status != Done {
				return errStale
			}
			r.Status, r.Song = Failed, nil
			r.Failure = &Failure{Code: "song_lost", Message: "the song was finished, but the disk has lost it; make it again with the same request", Type: "server_error", Status: 500}
			return nil
		})
		if err != nil && !errors.Is(err, errStale) && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	if lost > 0 {
		s.log.Error("songs were lost by the disk", "songs", lost)
	}
	if s.server != nil {
		if err := s.restart(ctx); err != nil {
			return err
		}
	}
	// Whatever was in the making when the last run ended is not young any more.
	return s.requeue(ctx, s.o.now().Add(2*young))
}

// restart puts back in line what the last run was making. Only the embedded store can know
// that nobody works on it any more.
func (s *Store) restart(ctx context.Context) error {
	for name := range s.queue.ConsumerNames(ctx).Name() {
		if err := s.queue.DeleteConsumer(ctx, name); err != nil { // and what it had delivered
			return err
		}
	}
	for _, r := range s.index.records() {
		if r.Waits {
			s.remove(ctx, &r)
			continue
		}
		if r.Status != Running {
			continue
		}
		if _, err := s.update(ctx, r.ID, func(r *Record) error {
			r.Status, r.Worker, r.Started = Queued, "", time.Time{}
			return nil
		}); err != nil {
			return err
		}
		s.log.Info("a job begins again", "id", r.ID, "tries", r.Tries)
	}
	return nil
}
