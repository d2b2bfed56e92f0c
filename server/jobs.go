package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"skald/host/audio"
	"skald/host/engine"
	"skald/server/jobs"
	"skald/server/request"
)

// routeJobs adds the routes of jobs.
func (s *Server) routeJobs(v1 *gin.RouterGroup) {
	reading := []string{http.MethodGet, http.MethodHead}
	with := func(handle func(http.ResponseWriter, *http.Request, *jobs.Store)) gin.HandlerFunc {
		return func(c *gin.Context) {
			if s.config.Jobs == nil {
				s.writeError(c.Writer, newError(http.StatusNotFound, badRequest, "jobs_off", "this server keeps no jobs"))
				return
			}
			handle(c.Writer, c.Request, s.config.Jobs)
		}
	}
	of := func(handle func(http.ResponseWriter, *http.Request, *jobs.Store, string)) gin.HandlerFunc {
		return func(c *gin.Context) {
			with(func(w http.ResponseWriter, r *http.Request, store *jobs.Store) { handle(w, r, store, c.Param("id")) })(c)
		}
	}
	v1.POST("/music/jobs", with(s.createJob))
	v1.Match(reading, "/music/jobs", with(s.listJobs))
	v1.Match(reading, "/music/jobs/:id", of(s.getJob))
	v1.DELETE("/music/jobs/:id", of(s.deleteJob))
	v1.GET("/music/jobs/:id/events", of(s.jobEvents))
	v1.Match(reading, "/music/jobs/:id/audio", of(s.jobAudio))
	v1.POST("/music/jobs/:id/cancel", of(s.cancelJob))
	v1.POST("/music/jobs/:id/finish", of(s.finishJob))
}

// jobObject is a job as its caller sees it.
type jobObject struct {
	ID        string `json:"id"`
	Object    string `json:"object"` // music.job
	Status    string `json:"status"` // queued, running, done, failed, cancelled
	Model     string `json:"model"`
	CreatedAt int64  `json:"created_at"` // Unix seconds
	StartedAt int64  `json:"started_at,omitempty"`
	EndedAt   int64  `json:"ended_at,omitempty"`
	Tries     int    `json:"tries"` // begun so far
	Position  int    `json:"position,omitempty"`

	Stage        string   `json:"stage,omitempty"`
	StagePercent *float64 `json:"stage_percent,omitempty"`
	Percent      float64  `json:"percent"`
	Frames       int      `json:"frames"`
	MaxFrames    int      `json:"max_frames,omitempty"`
	Window       int      `json:"window,omitempty"`
	Windows      int      `json:"windows,omitempty"`
	AudioSeconds float64  `json:"audio_seconds"` // that can be heard
	Elapsed      float64  `json:"elapsed_seconds,omitempty"`
	ETA          *float64 `json:"eta_seconds,omitempty"`

	SampleRate   int         `json:"sample_rate,omitempty"` // of the song as it is stored
	PromptTokens int         `json:"prompt_tokens,omitempty"`
	EndReason    string      `json:"end_reason,omitempty"`
	RMS          *float64    `json:"rms,omitempty"`
	Peak         *float64    `json:"peak,omitempty"`
	SHA256       string      `json:"pcm_sha256,omitempty"` // of the song as 16-bit PCM
	Timings      []jobTiming `json:"timings"`
	Warnings     []string    `json:"warnings"`
	Error        *apiError   `json:"error,omitempty"`

	Request *request.Understood `json:"request,omitempty"`
}

type jobTiming struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
}

type jobList struct {
	Object  string      `json:"object"` // list
	Data    []jobObject `json:"data"`
	FirstID string      `json:"first_id,omitempty"`
	LastID  string      `json:"last_id,omitempty"`
	HasMore bool        `json:"has_more"`
}

type jobDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // music.job
	Deleted bool   `json:"deleted"`
}

func describeJob(j jobs.Job) jobObject {
	o := jobObject{
		ID: j.ID, Object: "music.job", Status: string(j.Status), Model: j.Model,
		CreatedAt: j.Created.Unix(), StartedAt: unix(j.Started), EndedAt: unix(j.Ended),
		Tries: j.Tries, Position: j.Position,
		Timings: []jobTiming{}, Warnings: slices.Concat([]string{}, j.Warnings),
	}
	if p := j.Progress; p != nil {
		o.Stage, o.Percent, o.Frames, o.MaxFrames = string(p.Stage), p.Percent, p.Frames, p.Max
		o.Window, o.Windows, o.Elapsed = p.Window, p.Windows, p.Elapsed.Seconds()
		stage := 100 * p.Fraction
		o.StagePercent = &stage
		o.AudioSeconds = float64(p.Samples) / float64(max(p.Rate, 1))
		if p.ETA > 0 {
			eta := p.ETA.Seconds()
			o.ETA = &eta
		}
	}
	if g := j.Song; g != nil {
		o.Percent, o.Frames, o.AudioSeconds = 100, g.Frames, float64(g.Samples)/float64(max(g.SampleRate, 1))
		o.SampleRate, o.PromptTokens, o.EndReason = g.SampleRate, g.Prompt, string(g.EndReason)
		o.RMS, o.Peak, o.SHA256 = &g.RMS, &g.Peak, g.SHA256
		for _, t := range g.Timings {
			o.Timings = append(o.Timings, jobTiming{string(t.Stage), t.Duration.Seconds()})
		}
	}
	if f := j.Failure; f != nil && j.Status != jobs.Done {
		o.Error = newError(0, f.Type, f.Code, f.Message)
	}
	return o
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// whole adds the request to a job.
func whole(ctx context.Context, store *jobs.Store, j jobs.Job) (jobObject, error) {
	o := describeJob(j)
	spec, err := store.Spec(ctx, j.ID)
	if err != nil {
		return o, err
	}
	o.Request = &spec
	return o, nil
}

// owner names the key of a request's caller; "" when no keys are asked for.
func owner(r *http.Request) string {
	who := callerOf(r.Context())
	if who == (caller{}) {
		return ""
	}
	return hex.EncodeToString(who[:8])
}

// createJob is POST /v1/music/jobs.
func (s *Server) createJob(w http.ResponseWriter, r *http.Request, store *jobs.Store) {
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
	n := jobs.New{Owner: owner(r), Key: r.Header.Get("Idempotency-Key")}
	if len(n.Key) > maxIdempotencyKey {
		s.writeError(w, newError(http.StatusBadRequest, badRequest, "invalid_idempotency_key",
			fmt.Sprintf("the Idempotency-Key is longer than %d bytes", maxIdempotencyKey)))
		return
	}
	rules := s.rules(m)
	rules.Source = func(id string) (request.Understood, error) {
		return findSource(r.Context(), store, id, n.Owner, rules.Info.Name)
	}
	speech, problems := request.Parse(body, rules)
	if len(problems) > 0 {
		s.writeError(w, errProblems(problems))
		return
	}
	if most := s.config.MaxSongsPerKey; most > 0 && n.Owner != "" && store.OpenJobs(n.Owner) >= most {
		e := newError(http.StatusTooManyRequests, "rate_limit_error", "key_limit",
			fmt.Sprintf("%d jobs of this API key are running or waiting, as many as a key may have; try again when one is done", most))
		e.retryAfter = s.waitASong()
		s.writeError(w, e)
		return
	}
	n.Spec, n.Warnings = speech.Understood(&rules), speech.Warnings
	j, err := store.Create(r.Context(), n)
	if err != nil {
		s.writeJobError(w, r, err)
		return
	}
	o := describeJob(j)
	o.Request = &n.Spec
	w.Header().Set("Location", "/v1/music/jobs/"+j.ID)
	writeJSON(w, http.StatusAccepted, o)
}

const maxIdempotencyKey = 255 // bytes

func (s *Server) waitASong() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retryAfter()
}

// findSource continues the message "source_job ".
func findSource(ctx context.Context, store *jobs.Store, id, owner, model string) (request.Understood, error) {
	spec, err := store.Source(ctx, id, owner)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return spec, errors.New("names no job that is there")
	case err != nil:
		return spec, fmt.Errorf("cannot be rendered again: %w", err)
	case spec.Model != model:
		return spec, fmt.Errorf("is a song of the model %q, whose codes mean nothing to %q", spec.Model, model)
	}
	return spec, nil
}

// findJob returns a caller's job, or answers that there is none.
func (s *Server) findJob(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string) (jobs.Job, bool) {
	j, err := store.Get(r.Context(), id, owner(r))
	if err != nil {
		s.writeJobError(w, r, err)
	}
	return j, err == nil
}

func (s *Server) getJob(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string) {
	if !s.takesQuery(w, r) {
		return
	}
	if j, ok := s.findJob(w, r, store, id); ok {
		s.writeJob(w, r, store, j)
	}
}

func (s *Server) writeJob(w http.ResponseWriter, r *http.Request, store *jobs.Store, j jobs.Job) {
	o, err := whole(r.Context(), store, j)
	if err != nil {
		s.writeJobError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, o)
}

func (s *Server) deleteJob(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string) {
	if !s.takesQuery(w, r) {
		return
	}
	if _, ok := s.findJob(w, r, store, id); !ok {
		return
	}
	if err := store.Delete(r.Context(), id); err != nil {
		s.writeJobError(w, r, err)
		return
	}
	s.songFiles.forget(id)
	writeJSON(w, http.StatusOK, jobDeleted{id, "music.job", true})
}

func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string) {
	s.changeJob(w, r, store, id, store.Cancel)
}

func (s *Server) finishJob(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string) {
	s.changeJob(w, r, store, id, store.Finish)
}

func (s *Server) changeJob(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string, change func(context.Context, string) (jobs.Record, error)) {
	if !s.takesQuery(w, r) {
		return
	}
	if _, ok := s.findJob(w, r, store, id); !ok {
		return
	}
	if record, err := change(r.Context(), id); err != nil {
		if errors.Is(err, jobs.ErrEnded) {
			err = fmt.Errorf("%w: it is %s", err, record.Status)
		}
		s.writeJobError(w, r, err)
		return
	}
	if j, ok := s.findJob(w, r, store, id); ok {
		s.writeJob(w, r, store, j)
	}
}

const (
	usualPage = 20
	mostPage  = 100
)

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request, store *jobs.Store) {
	if !s.takesQuery(w, r, "limit", "after", "status") {
		return
	}
	q, refusal := readQuery(r.URL.Query())
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	q.Owner = owner(r)
	list := jobList{Object: "list", Data: []jobObject{}}
	found, more := store.List(q)
	for _, j := range found {
		o, err := whole(r.Context(), store, j)
		if errors.Is(err, jobs.ErrNotFound) {
			continue // deleted meanwhile
		} else if err != nil {
			s.writeJobError(w, r, err)
			return
		}
		list.Data = append(list.Data, o)
	}
	list.HasMore = more
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = list.Data[0].ID, list.Data[n-1].ID
	}
	writeJSON(w, http.StatusOK, list)
}

func readQuery(v url.Values) (q jobs.Query, refusal *apiError) {
	q.Limit, q.After = usualPage, v.Get("after")
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostPage {
			return q, errQuery("limit", fmt.Sprintf("limit must be 1 to %d; got %q", mostPage, limit(text)))
		}
		q.Limit = n
	}
	if q.After != "" && !jobs.ValidID(q.After) {
		return q, errQuery("after", fmt.Sprintf("after must be the id of a job, the last of the page before; got %q", limit(q.After)))
	}
	for _, text := range v["status"] {
		for word := range strings.SplitSeq(text, ",") {
			if !slices.Contains(jobs.Statuses(), jobs.Status(word)) {
				return q, errQuery("status", fmt.Sprintf("status must be one of %v; got %q", jobs.Statuses(), limit(word)))
			}
			q.Statuses = append(q.Statuses, jobs.Status(word))
		}
	}
	return q, nil
}

func errQuery(param, message string) *apiError {
	e := newError(http.StatusBadRequest, badRequest, string(request.InvalidValue), message)
	e.Param = &param
	return e
}

// takesQuery refuses parameters of the URL that would be dropped silently.
func (s *Server) takesQuery(w http.ResponseWriter, r *http.Request, names ...string) bool {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.writeError(w, newError(http.StatusBadRequest, badRequest, "invalid_query", "the query of the URL cannot be read"))
		return false
	}
	for name, v := range values {
		if !slices.Contains(names, name) {
			message := fmt.Sprintf("%q is not a parameter of this URL", limit(name))
			if len(names) > 0 {
				message += "; these are: " + strings.Join(names, ", ")
			}
			s.writeError(w, newError(http.StatusBadRequest, badRequest, string(request.UnknownField), message))
			return false
		}
		if len(v) > 1 && name != "status" {
			s.writeError(w, errQuery(name, name+" occurs twice; send it once"))
			return false
		}
	}
	return true
}

// writeJobError answers with what the store said.
func (s *Server) writeJobError(w http.ResponseWriter, r *http.Request, err error) {
	var full *jobs.FullError
	var e *apiError
	switch {
	case r.Context().Err() != nil:
		return // nobody reads it
	case errors.Is(err, jobs.ErrNotFound):
		e = newError(http.StatusNotFound, badRequest, "job_not_found", "there is no such job; it may have been deleted, or have been kept for as long as jobs are")
	case errors.Is(err, jobs.ErrConflict):
		e = newError(http.StatusConflict, badRequest, "idempotency_conflict", "the Idempotency-Key was used before with another body; send another key, or the same body")
	case errors.Is(err, jobs.ErrEnded):
		e = newError(http.StatusConflict, badRequest, "job_ended", err.Error())
	case errors.Is(err, jobs.ErrQueued):
		e = newError(http.StatusConflict, badRequest, "job_not_begun", "the job has not begun: there is nothing to keep; cancel it instead")
	case errors.Is(err, jobs.ErrNoAudio):
		e = newError(http.StatusConflict, badRequest, "no_audio", err.Error())
	case errors.As(err, &full):
		e = newError(http.StatusTooManyRequests, "rate_limit_error", "queue_full", full.Error()+"; try again later")
		e.retryAfter = s.waitASong()
	default:
		s.log.Error("job store failed", "error", err, "request_id", w.Header().Get(requestIDHeader))
		e = errUnavailable("store_failed", "the store of jobs does not answer, or its disk is full; nothing was accepted; try again soon")
	}
	s.writeError(w, e)
}

// startWorker lets the model take up jobs.
func (s *Server) startWorker(m singer) error {
	info := m.Info()
	w, err := s.config.Jobs.Work(context.Background(), jobs.WorkerOptions{
		Name: s.config.WorkerName, Model: info.Name, Songs: info.Songs, SampleRate: info.SampleRate,
		Metadata: audio.Metadata{Title: "Song", Model: info.Name, Software: strings.TrimSpace("skald " + s.config.Version)},
		Sing:     func(ctx context.Context, r engine.Request) (*engine.Song, error) { return s.singJob(ctx, m, r) },
		Explain:  explain,
		About:    &jobs.About{Info: info, Defaults: jobs.SpecOf(info.Name, m.Defaults()), Check: m.Check, Tokens: m.PromptTokens},
		Ended:    func(o jobs.Outcome) { s.metrics.tries.WithLabelValues(string(o)).Inc() },
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worker = w
	return nil
}

// singJob makes the song of a job and keeps account of it.
func (s *Server) singJob(ctx context.Context, m singer, r engine.Request) (*engine.Song, error) {
	song := s.metrics.watch()
	rate := float64(m.Info().SampleRate)
	progress, sink := r.Progress, r.Sink
	r.Progress = func(p engine.Progress) {
		song.progress(p)
		progress(p)
	}
	r.Sink = func(samples [2][]float32) error {
		song.sounds(float64(len(samples[0]))/rate, false)
		return sink(samples)
	}
	sung, err := s.sing(ctx, m, r)
	if err == nil {
		song.sung(sung.Timings)
	}
	song.ended(err, ctx.Err() != nil)
	if errors.Is(err, errDraining) {
		err = jobs.ErrStopped
	}
	return sung, err
}

// explain tells a job's caller why its song failed, and whether it may be tried again.
func explain(_ jobs.Spec, err error) (jobs.Failure, bool) {
	e := errSong(request.Speech{}, err)
	again := !e.noRetry && e.status >= http.StatusInternalServerError
	switch {
	case jobs.IsStoreError(err):
		e.Code, e.Message = "store_failed", "the song was made and could not be stored: "+err.Error()
	case e.status == http.StatusInternalServerError && again:
		e.Message = "the server failed while it made the song; its log tells more under the job's id"
	}
	return jobs.Failure{Code: e.Code, Message: e.Message, Type: e.Type, Status: e.status, NoRetry: e.noRetry}, again
}
