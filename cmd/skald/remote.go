package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald/host/engine"
)

// remote is a server that makes songs for `sing --server`.
type remote struct {
	base string // without a slash at its end
	key  string
}

// remoteJob is what the command reads of a server's job.
type remoteJob struct {
	ID           string   `json:"id"`
	Status       string   `json:"status"`
	Model        string   `json:"model"`
	Position     int      `json:"position"`
	Stage        string   `json:"stage"`
	StagePercent float64  `json:"stage_percent"`
	Frames       int      `json:"frames"`
	MaxFrames    int      `json:"max_frames"`
	Window       int      `json:"window"`
	Windows      int      `json:"windows"`
	AudioSeconds float64  `json:"audio_seconds"`
	ETA          float64  `json:"eta_seconds"`
	SampleRate   int      `json:"sample_rate"`
	PromptTokens int      `json:"prompt_tokens"`
	EndReason    string   `json:"end_reason"`
	RMS          float64  `json:"rms"`
	Peak         float64  `json:"peak"`
	Warnings     []string `json:"warnings"`
	Timings      []struct {
		Stage   string  `json:"stage"`
		Seconds float64 `json:"seconds"`
	} `json:"timings"`
	Error *remoteError `json:"error"`
}

// remoteError is the server's error object.
type remoteError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	status  int
}

func (e *remoteError) Error() string { return e.Message }

func newRemote(address, key string) (*remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, usagef("--server %q is not an address such as http://127.0.0.1:8087", address)
	}
	return &remote{strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/v1"), key}, nil
}

// do asks the server; the caller closes the body of what is no error.
func (r *remote) do(ctx context.Context, method, path string, body []byte, header ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		request.Header.Set("Authorization", "Bearer "+r.key)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	var reply struct{ Error remoteError }
	data, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if json.Unmarshal(data, &reply) != nil || reply.Error.Message == "" {
		reply.Error.Message = fmt.Sprintf("%s answers %s; is it a skald server?", r.base, response.Status)
	}
	reply.Error.status = response.StatusCode
	return nil, &reply.Error
}

// again tells whether the same request may succeed later.
func again(err error) bool {
	var e *remoteError
	return !errors.As(err, &e) || e.status == http.StatusServiceUnavailable
}

// retry calls f until it succeeds, fails for good, or has failed for a minute.
func retry(ctx context.Context, f func() error) error {
	const patience = time.Minute
	for begin := time.Now(); ; {
		err := f()
		if err == nil || !again(err) || ctx.Err() != nil || time.Since(begin) > patience {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// create posts a job, once, however often the connection breaks.
func (r *remote) create(ctx context.Context, body map[string]any) (job remoteJob, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return job, err
	}
	key := rand.Text()
	return job, retry(ctx, func() error {
		response, err := r.do(ctx, http.MethodPost, "/v1/music/jobs", data, "Idempotency-Key", key)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		return json.NewDecoder(response.Body).Decode(&job)
	})
}

// follow calls show for every change of a job until it ends.
func (r *remote) follow(ctx context.Context, id string, show func(*remoteJob)) (job remoteJob, err error) {
	last := ""
	for {
		before := last
		err := retry(ctx, func() error { return r.events(ctx, id, &last, &job, show) })
		switch {
		case err != nil:
			return job, err
		case job.Status == "done" || job.Status == "failed" || job.Status == "cancelled":
			return job, nil
		case last == before: // the connection ended without news
			select {
			case <-ctx.Done():
				return job, ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
}

// events reads one stream of events to its end.
func (r *remote) events(ctx context.Context, id string, last *string, job *remoteJob, show func(*remoteJob)) error {
	response, err := r.do(ctx, http.MethodGet, "/v1/music/jobs/"+id+"/events", nil, "Last-Event-ID", *last)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 8<<20) // a job's warnings may be long
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			*last = id
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			*job = remoteJob{}
			if err := json.Unmarshal([]byte(data), job); err != nil {
				return err
			}
			show(job)
		}
	}
	return nil // also when the connection broke: the next one goes on
}

// runRemote is sing with a server.
func (f *singFlags) runRemote(cmd *cobra.Command) (err error) {
	ctx, stderr := cmd.Context(), cmd.ErrOrStderr()
	server, err := newRemote(f.server, f.key)
	if err != nil {
		return err
	}
	format, err := f.checkRemote(cmd)
	if err != nil {
		return err
	}
	out, err := createAtomic(f.output)
	if err != nil {
		return err
	}
	defer out.discard()
	show := newDisplay(stderr)
	defer show.close()
	begin := time.Now()
	job, err := server.create(ctx, f.remoteBody(cmd, format))
	if err != nil {
		return remoteFault(cause(ctx, err))
	}
	fmt.Fprintf(show.log(), "%s at %s\n", job.ID, server.base)
	defer func() {
		if ctx.Err() == nil {
			return
		}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		response, e := server.do(late, http.MethodPost, "/v1/music/jobs/"+job.ID+"/cancel", nil)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("the job may go on, it could not be cancelled: %w", e))
			return
		}
		response.Body.Close()
	}()
	end, err := server.follow(ctx, job.ID, show.remote)
	if err != nil {
		return cause(ctx, err)
	}
	if end.Status != "done" {
		if end.Error != nil {
			return fmt.Errorf("%s %s: %w", job.ID, end.Status, end.Error)
		}
		return fmt.Errorf("%s was %s", job.ID, end.Status)
	}
	if err := server.download(ctx, job.ID, out); err != nil {
		return cause(ctx, err)
	}
	if err := out.commit(); err != nil {
		return fmt.Errorf("writing %s: %w", f.output, err)
	}
	show.close()
	for _, w := range end.Warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	song, info := end.song(f.seed)
	report(cmd.OutOrStdout(), f.output, song, info, end.AudioSeconds, time.Since(begin))
	return nil
}

// checkRemote refuses what a server cannot be told.
func (f *singFlags) checkRemote(cmd *cobra.Command) (songFormat, error) {
	for _, name := range []string{"trace", "replay", "wav-format"} {
		if cmd.Flags().Changed(name) {
			return songFormat{}, usagef("--%s cannot be had from a server: leave it or --server out", name)
		}
	}
	if f.rng.value != "philox" {
		return songFormat{}, usagef("--rng %s cannot be had from a server: leave it or --server out", f.rng.value)
	}
	for _, name := range []string{"model", "device", "precision", "threads", "pack"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			fmt.Fprintf(cmd.ErrOrStderr(), "skald: --%s has no effect with --server, which has loaded its model\n", name)
		}
	}
	return f.format(cmd)
}

// remoteBody is the request: what the command line said, and nothing of what the server
// knows better.
func (f *singFlags) remoteBody(cmd *cobra.Command, format songFormat) map[string]any {
	body := map[string]any{"seed": f.seed, "response_format": format.container.String(), "prompt_mode": f.promptMode.value}
	if f.lyrics != "" {
		body["input"] = f.lyrics
	}
	if f.instructions != "" {
		body["instructions"] = f.instructions
	}
	if f.instrumental {
		body["instrumental"] = true
	}
	if f.sampleRate != 0 {
		body["sample_rate"] = f.sampleRate
	}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{
		"duration": {"audio_duration", f.duration}, "steps": {"num_inference_steps", f.steps}, "guidance": {"guidance_scale", f.guidance},
	} {
		if cmd.Flags().Changed(flag) {
			body[field.name] = field.value
		}
	}
	return body
}

// remoteFault makes a usage error of one that says the request is at fault.
func remoteFault(err error) error {
	var e *remoteError
	if errors.As(err, &e) && (e.status == http.StatusBadRequest || e.status == http.StatusNotFound) {
		return &usageError{err}
	}
	return err
}

// download writes the finished song.
func (r *remote) download(ctx context.Context, id string, w io.WriteSeeker) error {
	return retry(ctx, func() error {
		if _, err := w.Seek(0, io.SeekStart); err != nil {
			return err
		}
		response, err := r.do(ctx, http.MethodGet, "/v1/music/jobs/"+id+"/audio", nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(w, response.Body)
		return err
	})
}

// remote shows a server's progress as if it were our own.
func (d *display) remote(job *remoteJob) {
	switch {
	case job.Status == "queued" && job.Position > 0:
		d.show(string(engine.StageQueue), 0, fmt.Sprintf("position %d", job.Position))
	case job.Status == "done":
		for _, stage := range []engine.Stage{engine.StageAR, engine.StageFlow, engine.StageVocoder} {
			d.show(string(stage), 1, "")
			d.finish(string(stage))
		}
	case job.Stage != "":
		d.finish(string(engine.StageQueue))
		d.song(engine.Progress{
			Stage: engine.Stage(job.Stage), Fraction: job.StagePercent / 100, Frames: job.Frames, MaxFrames: job.MaxFrames,
			Window: job.Window, Windows: job.Windows, ETA: time.Duration(job.ETA * float64(time.Second)),
		})
	}
}

// song is the job as report takes it.
func (j *remoteJob) song(seed uint64) (*engine.Song, engine.Info) {
	s := &engine.Song{
		SampleRate: j.SampleRate, Seed: seed, PromptTokens: j.PromptTokens, Frames: j.Frames,
		EndReason: engine.EndReason(j.EndReason), RMS: j.RMS, Peak: j.Peak,
	}
	for _, t := range j.Timings {
		s.Timings = append(s.Timings, engine.Timing{Stage: engine.Stage(t.Stage), Duration: time.Duration(t.Seconds * float64(time.Second))})
	}
	return s, engine.Info{Name: j.Model}
}
