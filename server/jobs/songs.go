package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"skald/host/engine"
)

// objectOf names the song of a try.
func objectOf(id string, try int) string { return fmt.Sprintf("%s/%d.flac", id, try) }

// codesOf names the codes beside a song.
func codesOf(object string) string { return object + ".codes" }

// sourceOf names the codes that a job is to render again.
func sourceOf(id string) string { return id + "/source.codes" }

// codes are stored as JSON: half a megabyte for the longest song.
type codes struct {
	Codes   [][]int32 `json:"codes"`
	ByToken bool      `json:"ended_by_token"`
}

func encodeCodes(song *engine.Song) []byte {
	return mustJSON(&codes{song.Codes, song.EndReason == engine.EndEOS})
}

func (s *Store) removeObject(ctx context.Context, name string) {
	if err := s.songs.Delete(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		s.log.Warn("cannot delete", "object", name, "error", err)
	}
}

// FLAC returns the finished song of a job, as it is stored.
func (s *Store) FLAC(ctx context.Context, r *Record) ([]byte, error) {
	if r.Song == nil {
		return nil, ErrNoAudio
	}
	data, err := s.songs.GetBytes(ctx, r.Song.Object)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, fmt.Errorf("%w: the store has lost the song of %s", ErrNoAudio, r.ID)
	}
	return data, err
}

// Source tells what the job was asked for whose codes are to be rendered again.
func (s *Store) Source(ctx context.Context, id, owner string) (Spec, error) {
	j, err := s.Get(ctx, id, owner)
	if err != nil {
		return Spec{}, err
	}
	if j.Status != Done {
		return Spec{}, fmt.Errorf("the job is %s: only one that is done has codes to render again", j.Status)
	}
	return s.Spec(ctx, id)
}

// copyCodes keeps a source job's codes for a new one, which need not care what becomes of
// the source.
func (s *Store) copyCodes(ctx context.Context, source, id string) error {
	r, _, err := s.read(ctx, source)
	if err != nil {
		return err
	}
	if r.Song == nil {
		return ErrNoAudio
	}
	data, err := s.songs.GetBytes(ctx, codesOf(r.Song.Object))
	if err != nil {
		return fmt.Errorf("codes of %s: %w", source, err)
	}
	_, err = s.songs.PutBytes(ctx, sourceOf(id), data)
	return err
}

// replay reads the codes that a job is to render again.
func (s *Store) replay(ctx context.Context, id string) (*engine.Replay, error) {
	data, err := s.songs.GetBytes(ctx, sourceOf(id))
	if err != nil {
		return nil, fmt.Errorf("codes for %s: %w", id, err)
	}
	var c codes
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("codes for %s: %w", id, err)
	}
	return &engine.Replay{Codes: c.Codes, EndedByToken: c.ByToken}, nil
}
