package jobs

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"skald/host/engine"
	"skald/server/request"
)

// Status says where a job is on its way.
type Status string

// The states of a job; the last three are ends.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Done      Status = "done"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Statuses lists them in the order of a job's way.
func Statuses() []Status { return []Status{Queued, Running, Done, Failed, Cancelled} }

// Ended tells whether nothing more will happen.
func (s Status) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Record is what is stored of a job, but for its request, its song and its codes.
type Record struct {
	ID       string    `json:"id"`
	Model    string    `json:"model"`
	Owner    string    `json:"owner,omitempty"` // whose key it was made with; "": anyone's
	Status   Status    `json:"status"`
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started,omitzero"` // of the newest try
	Ended    time.Time `json:"ended,omitzero"`
	Tries    int       `json:"tries,omitempty"` // begun so far
	Worker   string    `json:"worker,omitempty"`
	FinishAt int       `json:"finish_at,omitempty"` // frames, after a call to end the song early; -1: at once
	Warnings []string  `json:"warnings,omitempty"`
	Failure  *Failure  `json:"failure,omitempty"` // why it failed, or why its newest try did
	Song     *Song     `json:"song,omitempty"`

	Idempotency string `json:"idempotency,omitempty"` // key of the entry that names this job

	// Waits is the request for a song whose caller waits for it: its song is handed over
	// live and not stored, and nobody lists it.
	Waits bool `json:"waits,omitempty"`
}

// Song describes a finished song.
type Song struct {
	Object     string           `json:"object"` // its name in the store
	Bytes      int64            `json:"bytes"`
	Samples    int              `json:"samples"` // of each channel
	SampleRate int              `json:"sample_rate"`
	Frames     int              `json:"frames"`
	EndReason  engine.EndReason `json:"end_reason"`
	Prompt     int              `json:"prompt_tokens"`
	RMS        float64          `json:"rms"`
	Peak       float64          `json:"peak"`
	Timings    []engine.Timing  `json:"timings"`
	SHA256     string           `json:"sha256"` // of the samples as 16-bit PCM
}

// Failure says why a job failed, in the terms of the API.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Status  int    `json:"status"`             // of HTTP
	NoRetry bool   `json:"no_retry,omitempty"` // the same request will fail again
}

// Spec is what a job was asked for.
type Spec = request.Understood

// Progress tells how far a running job is.
type Progress struct {
	Job      string        `json:"job"`
	Try      int           `json:"try"`
	Sequence int           `json:"sequence"` // grows within a try
	Stage    engine.Stage  `json:"stage"`
	Fraction float64       `json:"fraction"` // of the stage
	Frames   int           `json:"frames"`
	Max      int           `json:"max_frames"`
	Window   int           `json:"window"`
	Windows  int           `json:"windows"`
	Samples  int           `json:"samples"` // that can be heard
	Rate     int           `json:"rate"`    // of the samples
	Elapsed  time.Duration `json:"elapsed"`
	ETA      time.Duration `json:"eta"`
	Percent  float64       `json:"percent"` // of the whole song; never falls within a try
}

// Job is a record with what is known of its progress.
type Job struct {
	Record
	Revision uint64 // of the record
	Progress *Progress
	Position int // among those that wait for the same model, from 1; 0: it does not wait
}

// Errors of what callers ask for.
var (
	ErrNotFound = errors.New("there is no such job")
	ErrEnded    = errors.New("the job has ended")
	ErrQueued   = errors.New("the job has not begun")
	ErrConflict = errors.New("the Idempotency-Key was used with another body")
	ErrNoAudio  = errors.New("there is no audio")
)

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

const idPrefix = "job_"

// newID returns an id that sorts by its time, in milliseconds, and cannot be guessed.
func newID(ms int64) string {
	var b [20]byte
	binary.BigEndian.PutUint64(b[:8], uint64(ms)<<16)
	// Never fails.
	_, _ = rand.Read(b[6:])
	return idPrefix + strings.ToLower(idEncoding.EncodeToString(b[:]))
}

// idTime is the time in an id; 0 if it is none.
func idTime(id string) int64 {
	b, err := idEncoding.DecodeString(strings.ToUpper(strings.TrimPrefix(id, idPrefix)))
	if err != nil || len(b) != 20 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b[:8]) >> 16)
}

// ValidID tells whether a text can be the id of a job, and so is fit for a key.
func ValidID(id string) bool {
	return strings.HasPrefix(id, idPrefix) && id == strings.ToLower(id) && idTime(id) > 0
}
