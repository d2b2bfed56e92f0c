package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Names in the NATS account. Everything begins with skald, for permissions.
const (
	streamName   = "SKALD_QUEUE"
	queueSubject = "skald.queue."    // + model token . line . id
	helloSubject = "skald.worker."   // + model token
	checkSubject = "skald.check."    // + model token
	tellSubject  = "skald.progress." // + id
	liveSubject  = "skald.live."     // + id
	bucketName   = "skald"
	songsName    = "skald_songs"

	recordKey  = "job."
	requestKey = "req."
	idemKey    = "idem."
)

// Store keeps jobs. Its methods are safe for concurrent use.
type Store struct {
	o       Options
	log     *slog.Logger
	dir     *stateDir          // nil with an outside NATS server
	server  *natsserver.Server // nil with an outside NATS server
	conn    *nats.Conn
	js      jetstream.JetStream
	queue   jetstream.Stream
	records jetstream.KeyValue
	songs   jetstream.ObjectStore
	index   *index
	fleet   *fleet
	lastID  int64 // milliseconds; guarded by mu
	mu      sync.Mutex
	skew    time.Duration // by which the clock jumped ahead while we watched; of the janitor

	closing    context.Context
	stop       context.CancelFunc
	background sync.WaitGroup
}

// Open starts the embedded store, or connects to an outside one, and brings it in order:
// what a crash left half done is done or removed.
func Open(ctx context.Context, o Options) (s *Store, err error) {
	o.complete()
	s = &Store{o: o, log: o.Logger}
	s.closing, s.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.Close()
			s = nil
		}
	}()
	if o.URL != "" {
		s.conn, err = dial(o)
	} else {
		if s.dir, err = openStateDir(o.Dir); err != nil {
			return s, err
		}
		if s.server, s.conn, err = embed(o); err != nil {
			err = fmt.Errorf("state directory %s: %w", o.Dir, err)
		}
	}
	if err != nil {
		return s, err
	}
	if err := s.prepare(ctx); err != nil {
		return s, fmt.Errorf("store: %w", err)
	}
	if s.index, err = newIndex(s); err != nil {
		return s, fmt.Errorf("store: %w", err)
	}
	s.background.Go(s.index.run)
	if err := s.index.wait(ctx); err != nil {
		return s, err
	}
	if s.fleet, err = newFleet(s); err != nil {
		return s, fmt.Errorf("store: %w", err)
	}
	if err := s.mend(ctx); err != nil {
		return s, err
	}
	s.background.Go(s.keepHouse)
	counts := s.Counts()
	s.log.Info("jobs", "queued", counts[Queued]+counts[Running], "ended", counts[Done]+counts[Failed]+counts[Cancelled])
	return s, nil
}

// prepare makes the stream and the buckets, or changes them to this configuration.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.js, err = jetstream.New(s.conn); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if s.queue, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{queueSubject + ">"}, Retention: jetstream.WorkQueuePolicy,
		Storage: jetstream.FileStorage, Replicas: s.o.Replicas,
		// One message for each job, however often it is sent.
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	}); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if s.records, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucketName, History: 1, Storage: jetstream.FileStorage, Replicas: s.o.Replicas,
		MaxValueSize: -1, LimitMarkerTTL: markerTTL,
	}); err != nil {
		return fmt.Errorf("records (NATS 2.11 or newer is needed): %w", err)
	}
	if s.songs, err = s.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: songsName, Storage: jetstream.FileStorage, Replicas: s.o.Replicas, MaxBytes: -1,
	}); err != nil {
		return fmt.Errorf("songs: %w", err)
	}
	return nil
}

// markerTTL is how long a deleted key leaves a mark, so that those who watch learn of it.
const markerTTL = time.Hour

// Close ends what runs in the background and the embedded store. Workers must have been
// stopped.
func (s *Store) Close() error {
	s.stop()
	if s.index != nil {
		s.index.close()
	}
	s.background.Wait()
	if s.conn != nil {
		s.conn.Close()
	}
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	if s.dir == nil {
		return nil
	}
	err := s.dir.close()
	if s.o.Scratch {
		err = errors.Join(err, os.RemoveAll(s.o.Dir))
	}
	return err
}

// Reachable tells whether the store answers at all.
func (s *Store) Reachable() bool { return s.conn.IsConnected() }

// modelToken names a model in a subject, whose words take few characters.
func modelToken(model string) string { return digest([]byte(model))[:16] }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// The two lines before a model: of callers who wait, and of jobs.
const (
	lineNow = ".now."
	lineJob = ".job."
)

func subjectOf(r *Record) string {
	line := lineJob
	if r.Waits {
		line = lineNow
	}
	return queueSubject + modelToken(r.Model) + line + r.ID
}

// update changes a record, again and again until nobody else changed it meanwhile. An
// error of change leaves it as it is.
func (s *Store) update(ctx context.Context, id string, change func(*Record) error) (Record, error) {
	for {
		r, revision, err := s.read(ctx, id)
		if err != nil {
			return r, err
		}
		if err := change(&r); err != nil {
			return r, err
		}
		revision, err = s.records.Update(ctx, recordKey+id, mustJSON(&r), revision)
		switch {
		case err == nil:
			s.index.put(r, revision)
			return r, nil
		case errors.Is(err, jetstream.ErrKeyExists): // changed meanwhile
		case errors.Is(err, jetstream.ErrKeyNotFound):
			return r, ErrNotFound
		default:
			return r, err
		}
	}
}

// read is the record as it is stored now.
func (s *Store) read(ctx context.Context, id string) (r Record, revision uint64, err error) {
	if !ValidID(id) {
		return r, 0, ErrNotFound
	}
	e, err := s.records.Get(ctx, recordKey+id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return r, 0, ErrNotFound
	} else if err != nil {
		return r, 0, err
	}
	if err := json.Unmarshal(e.Value(), &r); err != nil {
		return r, 0, fmt.Errorf("record of %s: %w", id, err)
	}
	return r, e.Revision(), nil
}

// Spec is what a job was asked for.
func (s *Store) Spec(ctx context.Context, id string) (spec Spec, err error) {
	e, err := s.records.Get(ctx, requestKey+id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return spec, ErrNotFound
	} else if err != nil {
		return spec, err
	}
	if err := json.Unmarshal(e.Value(), &spec); err != nil {
		return spec, fmt.Errorf("request of %s: %w", id, err)
	}
	return spec, nil
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of ours that is not JSON
	}
	return b
}
