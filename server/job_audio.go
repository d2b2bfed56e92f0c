package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mewkiz/flac"

	"skald/host/audio"
	"skald/host/engine"
	"skald/server/jobs"
	"skald/server/request"
)

// jobAudio is GET /v1/music/jobs/{id}/audio: the song in any format, or what there is of
// it so far.
func (s *Server) jobAudio(w http.ResponseWriter, r *http.Request, store *jobs.Store, id string) {
	if !s.takesQuery(w, r, "format", "sample_rate") {
		return
	}
	j, ok := s.findJob(w, r, store, id)
	if !ok {
		return
	}
	spec, err := store.Spec(r.Context(), id)
	if err != nil {
		s.writeJobError(w, r, err)
		return
	}
	form, refusal := readForm(r, spec)
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	form.seed, form.model = spec.Seed, spec.Model
	var data []byte
	switch j.Status {
	case jobs.Done:
		data, err = s.songFiles.get(songFile{id, form}, func() ([]byte, error) { return s.encodeSong(r.Context(), store, &j, form) })
	case jobs.Running:
		data, err = s.encodeLive(r.Context(), store, id, form)
	default:
		err = fmt.Errorf("%w: the job is %s", jobs.ErrNoAudio, j.Status)
	}
	if err != nil {
		s.writeJobError(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", form.container.MediaType())
	h.Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", id+"."+form.container.String()))
	h.Set("Skald-Seed", strconv.FormatUint(spec.Seed, 10))
	h.Set("Skald-Sample-Rate", strconv.Itoa(form.rate))
	h.Set("Skald-Channels", strconv.Itoa(len(engine.Song{}.Samples)))
	h.Set("Skald-Complete", strconv.FormatBool(j.Status == jobs.Done))
	h.Set("Cache-Control", "no-store")
	modified := time.Time{}
	if j.Status == jobs.Done {
		h.Set("Skald-Frames", strconv.Itoa(j.Song.Frames))
		h.Set("Skald-End-Reason", string(j.Song.EndReason))
		h.Set("Server-Timing", serverTiming(j.Song.Timings))
		h.Set("Cache-Control", "private, no-cache") // ask each time whether it is still there
		h.Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%.32s-%s-%d", j.Song.SHA256, form.container, form.rate)))
		modified = j.Ended
	}
	http.ServeContent(&patientReply{w, patientWriter{w: w, patience: s.patience}}, r, "", modified, bytes.NewReader(data))
}

// patientReply is a reply whose reader has as much time as any other of a song.
type patientReply struct {
	http.ResponseWriter
	out patientWriter
}

func (w *patientReply) Write(p []byte) (int, error) { return w.out.Write(p) }

// songForm is what a song is made into.
type songForm struct {
	container audio.Container
	rate      int // 0 until the song's own is known
	seed      uint64
	model     string
}

// readForm takes what the URL says, and else what the job was asked for.
func readForm(r *http.Request, spec jobs.Spec) (songForm, *apiError) {
	f := songForm{container: spec.Container(), rate: spec.SampleRate}
	q := r.URL.Query()
	if name := q.Get("format"); name != "" {
		if !slices.Contains(request.Formats(), name) {
			return f, errQuery("format", fmt.Sprintf("format must be one of %s; got %q", strings.Join(request.Formats(), ", "), limit(name)))
		}
		f.container, _ = audio.ParseContainer(name) // one of Formats
		if f.container != spec.Container() && f.container.CheckSampleRate(f.rate) != nil {
			f.rate = 48000 // mp3 and opus have it too
		}
	}
	if text := q.Get("sample_rate"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < request.MinSampleRate || n > request.MaxSampleRate {
			return f, errQuery("sample_rate", fmt.Sprintf("sample_rate must be %d to %d; got %q", request.MinSampleRate, request.MaxSampleRate, limit(text)))
		}
		f.rate = n
	}
	if err := f.container.CheckSampleRate(f.rate); err != nil {
		return f, errQuery("sample_rate", "sample_rate does not fit the format: "+err.Error())
	}
	return f, nil
}

func (s *Server) encoderConfig(f songForm, rate int) audio.EncoderConfig {
	c := audio.EncoderConfig{Container: f.container, Channels: 2, InputRate: rate, SampleRate: f.rate}
	if f.container != audio.WAV { // as in replies of /v1/audio/speech
		c.Metadata = &audio.Metadata{Title: "Song", Model: f.model, Seed: f.seed, Software: strings.TrimSpace("skald " + s.config.Version)}
	}
	return c
}

// encodeSong makes a file of a stored song.
func (s *Server) encodeSong(ctx context.Context, store *jobs.Store, j *jobs.Job, f songForm) ([]byte, error) {
	stored, err := store.FLAC(ctx, &j.Record)
	if err != nil {
		return nil, err
	}
	if f.container == audio.FLAC && f.rate == j.Song.SampleRate {
		return stored, nil
	}
	samples, err := decodeFLAC(stored, j.Song)
	if err != nil {
		return nil, fmt.Errorf("stored song of %s: %w", j.ID, err)
	}
	return audio.Encode(s.encoderConfig(f, j.Song.SampleRate), samples[:]...)
}

// decodeFLAC is the song as it was before it was stored, but for the rounding to 16 bits:
// rounded again, it gives the same numbers.
func decodeFLAC(data []byte, song *jobs.Song) (samples [2][]float32, err error) {
	stream, err := flac.New(bytes.NewReader(data))
	if err != nil {
		return samples, err
	}
	if i := stream.Info; int(i.SampleRate) != song.SampleRate || i.NChannels != 2 || i.BitsPerSample != 16 {
		return samples, fmt.Errorf("it has %d channels of %d bits at %d Hz", i.NChannels, i.BitsPerSample, i.SampleRate)
	}
	for c := range samples {
		samples[c] = make([]float32, 0, song.Samples)
	}
	for {
		frame, err := stream.ParseNext()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return samples, err
		}
		for c := range samples {
			for _, v := range frame.Subframes[c].Samples {
				samples[c] = append(samples[c], float32(v)/(1<<15-1))
			}
		}
	}
	if n := len(samples[0]); n != song.Samples || len(samples[1]) != n {
		return samples, fmt.Errorf("it has %d samples, expected %d", n, song.Samples)
	}
	return samples, nil
}

// encodeLive makes the beginning of a stream of what is sung so far. A later call gives the
// same bytes and more, so that a reader can go on by Range.
func (s *Server) encodeLive(ctx context.Context, store *jobs.Store, id string, f songForm) ([]byte, error) {
	var out bytes.Buffer
	var e *audio.Encoder
	for from := 0; ; {
		samples, all, rate, err := store.Live(ctx, id, from)
		if err != nil {
			return nil, err
		}
		if all == 0 {
			return nil, fmt.Errorf("%w yet: the first window is not done", jobs.ErrNoAudio)
		}
		if e == nil {
			if e, err = audio.NewEncoder(&out, s.encoderConfig(f, rate)); err != nil {
				return nil, err
			}
			defer e.Close() // what it adds is of a song that ended here
		}
		if err := e.Write(samples[:]...); err != nil {
			return nil, err
		}
		if from += len(samples[0]); from >= all || len(samples[0]) == 0 {
			return bytes.Clone(out.Bytes()), nil
		}
	}
}

// songFiles keeps the newest files of finished songs: players ask for them in pieces.
type songFiles struct {
	mu       sync.Mutex
	files    []keptFile // the newest last
	bytes    int
	encoding sync.Mutex // one at a time: it takes a processor
}

type songFile struct {
	id   string
	form songForm
}

type keptFile struct {
	songFile
	data []byte
}

// maxSongFiles bounds what songFiles keeps, in bytes.
const maxSongFiles = 256 << 20

func (s *songFiles) get(file songFile, make func() ([]byte, error)) ([]byte, error) {
	if data, ok := s.find(file); ok {
		return data, nil
	}
	s.encoding.Lock()
	defer s.encoding.Unlock()
	if data, ok := s.find(file); ok {
		return data, nil
	}
	data, err := make()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, keptFile{file, data})
	s.bytes += len(data)
	for s.bytes > maxSongFiles && len(s.files) > 1 {
		s.bytes -= len(s.files[0].data)
		s.files = slices.Delete(s.files, 0, 1)
	}
	return data, nil
}

func (s *songFiles) find(file songFile) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.files {
		if f.songFile == file {
			s.files = append(slices.Delete(s.files, i, i+1), f)
			return f.data, true
		}
	}
	return nil, false
}

func (s *songFiles) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = slices.DeleteFunc(s.files, func(f keptFile) bool {
		if f.id == id {
			s.bytes -= len(f.data)
		}
		return f.id == id
	})
}
