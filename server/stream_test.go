package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mewkiz/flac"

	"skald/host/audio/resample"
	"skald/host/engine"
)

// with puts members into the valid body.
func with(members string) string { return strings.Replace(validBody, "{", "{"+members+",", 1) }

// events reads a stream of events to its end.
func events(t *testing.T, r io.Reader) []map[string]any {
	t.Helper()
	var all []map[string]any
	lines := bufio.NewScanner(r) // of at most 64 KiB
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok && lines.Text() != "" {
			t.Fatalf("line %q", lines.Text())
		}
		if ok {
			all = append(all, decodeJSON(t, []byte(data)))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// joinDeltas returns the audio of the deltas and the events that are none.
func joinDeltas(t *testing.T, all []map[string]any) (audio []byte, others []map[string]any) {
	t.Helper()
	for _, e := range all {
		if e["type"] != "speech.audio.delta" {
			others = append(others, e)
			continue
		}
		b, err := base64.StdEncoding.DecodeString(e["audio"].(string))
		if err != nil {
			t.Fatal(err)
		}
		audio = append(audio, b...)
	}
	return audio, others
}

// A stream has the samples of the whole reply, in every format and form.
func TestStreamIsTheWholeSong(t *testing.T) {
	s := openBuiltIn(t, Config{})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	send := func(members string) (*http.Response, []byte) {
		t.Helper()
		body := `{"input":"[verse]\nla","prompt":"calm","max_new_tokens":210,"steps":1,"seed":3` + members + `}`
		resp, err := http.Post(ts.URL+"/v1/audio/speech", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v, %.300s", members, resp.StatusCode, err, data)
		}
		return resp, data
	}
	types := map[string]string{
		"wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "opus": "audio/ogg; codecs=opus", "pcm": "audio/pcm",
	}
	compared := 0
	for _, tt := range []struct {
		format string
		rate   int
	}{{"wav", 44100}, {"flac", 44100}, {"mp3", 44100}, {"opus", 48000}, {"pcm", 44100}, {"wav", 22050}, {"flac", 32000}, {"pcm", 8000}} {
		members := fmt.Sprintf(`,"response_format":%q,"sample_rate":%d`, tt.format, tt.rate)
		resp, whole := send(members)
		if got := resp.Header.Get("Content-Type"); got != types[tt.format] {
			t.Errorf("%s: Content-Type %q", tt.format, got)
		}
		want := decode(t, tt.format, tt.rate, whole)
		// 210 frames of 1,764 samples at 44.1 kHz, in latents of 1,024.
		if n := resample.Length(210*1764/1024*1024, 44100, tt.rate); int64(len(want)) < 4*n || int64(len(want)) > 4*n+4*n/100 {
			if tt.format != "mp3" && tt.format != "opus" {
				t.Errorf("%s at %d Hz: %d bytes of samples, want about %d", tt.format, tt.rate, len(want), 4*n)
			}
		}
		for _, form := range []string{"audio", "sse"} {
			name := fmt.Sprintf("%s as %s at %d Hz", tt.format, form, tt.rate)
			resp, got := send(fmt.Sprintf(`%s,"stream":true,"stream_format":%q`, members, form))
			wantType := types[tt.format]
			if form == "sse" {
				var others []map[string]any
				got, others = joinDeltas(t, events(t, bytes.NewReader(got)))
				checkDone(t, others)
				wantType = "text/event-stream"
			}
			if h := resp.Header; h.Get("Content-Type") != wantType || h.Get("Skald-Seed") != "3" ||
				h.Get("Skald-Sample-Rate") != fmt.Sprint(tt.rate) || !strings.Contains(h.Get("Skald-Warning"), "demonstration") {
				t.Errorf("%s: headers %v", name, h)
			}
			if tr := resp.Trailer; tr.Get("Skald-Frames") != "210" || tr.Get("Skald-End-Reason") != "length" ||
				!strings.Contains(tr.Get("Server-Timing"), "vocoder;dur=") || tr.Get("Skald-Warning") != "" {
				t.Errorf("%s: trailers %v", name, tr)
			}
			if samples := decode(t, tt.format, tt.rate, got); !bytes.Equal(samples, want) {
				t.Errorf("%s: %d bytes of samples, or other ones than the %d of the whole", name, len(samples), len(want))
			}
			compared++
		}
	}
	t.Logf("%d streams compared", compared)
}

// decode returns the samples of a file or stream as 16-bit integers. Of the formats that
// lose some it returns the audio as it is encoded.
func decode(t *testing.T, format string, rate int, data []byte) []byte {
	t.Helper()
	le := binary.LittleEndian
	switch format {
	case "pcm":
		return data
	case "wav":
		size := le.Uint32(data[40:])
		if string(data[:4]) != "RIFF" || string(data[36:40]) != "data" || le.Uint32(data[24:]) != uint32(rate) {
			t.Fatalf("WAV header % x", data[:44])
		}
		if size == 0xFFFFFFFF { // a stream, to its end
			return data[44:]
		}
		if int(le.Uint32(data[4:]))+8 != len(data) || int(size)+44 != len(data) {
			t.Errorf("WAV of %d bytes says %d and %d of samples, expected a header of 44 bytes and nothing behind the samples",
				len(data), le.Uint32(data[4:]), size)
		}
		return data[44:]
	case "flac":
		stream, err := flac.New(bytes.NewReader(data))
		if err != nil || stream.Info.SampleRate != uint32(rate) {
			t.Fatalf("%v, %+v", err, stream)
		}
		var samples []byte
		for {
			frame, err := stream.ParseNext()
			if err == io.EOF {
				return samples
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range frame.Subframes[0].Samples {
				for _, channel := range frame.Subframes {
					samples = le.AppendUint16(samples, uint16(channel.Samples[i]))
				}
			}
		}
	case "opus":
		if !bytes.HasPrefix(data, []byte("OggS")) || !bytes.Contains(data, []byte("machine-made")) {
			t.Fatalf("Opus begins with %.40q", data)
		}
		return data
	}
	if !bytes.HasPrefix(data, []byte("ID3")) || !bytes.Contains(data, []byte("machine-made")) {
		t.Fatalf("MP3 begins with %.40q", data)
	}
	// A whole file has one frame more than a stream, with LAME's tag in it; frames of
	// the song are the same.
	tag := bytes.Index(data, []byte("Xing"))
	if tag < 0 {
		tag = bytes.Index(data, []byte("Info"))
	}
	frame := bytes.Index(data[max(tag, 0):], []byte{0xff, 0xfb})
	if frame < 0 {
		t.Fatal("MP3 without a frame")
	}
	return data[max(tag, 0)+frame:]
}

// checkDone checks that the only event beside the deltas is a good last one.
func checkDone(t *testing.T, others []map[string]any) {
	t.Helper()
	if len(others) != 1 || others[0]["type"] != "speech.audio.done" {
		t.Fatalf("other events: %v", others)
	}
	done := others[0]
	u := done["usage"].(map[string]any)
	if u["output_tokens"] != 210.0 || u["input_tokens"].(float64) < 3 || u["total_tokens"] != u["input_tokens"].(float64)+210 ||
		done["frames"] != 210.0 || done["end_reason"] != "length" || len(done["warnings"].([]any)) == 0 {
		t.Errorf("last event %v", done)
	}
}

// ask sends the valid body with more members to a running test server.
func ask(t *testing.T, ctx context.Context, ts *httptest.Server, members string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", ts.URL+"/v1/audio/speech", strings.NewReader(with(members)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := ts.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// pieces returns a song function that hands over one piece, tells so, and goes on when
// the test lets it: to the rest of the song, or to an error.
func pieces(sent chan<- struct{}, goOn <-chan error) func(context.Context, engine.Request) (*engine.Song, error) {
	return func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		song := testSong(r)
		if err := r.Sink(song.Samples); err != nil {
			return nil, err
		}
		sent <- struct{}{}
		select {
		case err := <-goOn:
			return song, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Every piece is sent when it is there, not when the next one is.
func TestStreamIsFlushed(t *testing.T) {
	sent, goOn := make(chan struct{}, 1), make(chan error)
	s, _ := newTestServer(t, Config{}, &fakeSinger{song: pieces(sent, goOn)})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	for _, form := range []string{"audio", "sse"} {
		resp := ask(t, t.Context(), ts, `"stream":true,"stream_format":"`+form+`"`)
		n := 44 + 4*3072
		if form == "sse" {
			n = len(`data: {"type":"speech.audio.delta","audio":""}`) + base64.StdEncoding.EncodedLen(n)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		receive(t, sent, "piece")
		goOn <- nil
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		// The fake's song has warnings that were not announced.
		if got := resp.Trailer.Values("Skald-Warning"); len(got) != 2 {
			t.Errorf("%s: late warnings %q", form, got)
		}
	}
}

// A song that fails halfway is never taken for a whole one.
func TestStreamFails(t *testing.T) {
	failure := &engine.NumericError{Stage: engine.StageFlow, What: "NaN"}
	sent, goOn := make(chan struct{}, 1), make(chan error, 1)
	s, log := newTestServer(t, Config{MaxQueue: -1}, &fakeSinger{song: pieces(sent, goOn)})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()

	resp := ask(t, t.Context(), ts, `"stream":true`)
	receive(t, sent, "piece")
	goOn <- failure
	if n, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || n != 44+4*3072 {
		t.Errorf("bare audio: %d bytes, then %v", n, err)
	}
	if resp.Trailer.Get("Skald-Frames") != "" {
		t.Errorf("bare audio: trailers %v", resp.Trailer)
	}

	resp = ask(t, t.Context(), ts, `"stream_format":"sse"`)
	receive(t, sent, "piece")
	goOn <- failure
	_, others := joinDeltas(t, events(t, resp.Body))
	if len(others) != 1 || others[0]["type"] != "error" {
		t.Fatalf("events %v", others)
	}
	data, err := json.Marshal(map[string]any{"error": others[0]["error"]})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}, requestIDHeader: {"x"}}
	if e := decodeError(t, bytes.NewReader(data), header); e.Error.Code != "numeric_failure" {
		t.Errorf("error event %+v", e)
	}
	s.waitPlaces(t, 0)
	for _, part := range []string{"broken_off=true", "reply broken off", "song failed"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("no %q in the log:\n%s", part, log)
		}
	}
}

// Before there is audio, a stream's failure is a status as any other.
func TestStreamFailsBeforeAudio(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{song: func(context.Context, engine.Request) (*engine.Song, error) {
		return nil, &engine.MemoryError{What: "the song", Need: 2, Have: 1}
	}})
	for _, members := range []string{`"stream":true`, `"stream_format":"sse"`} {
		wantError(t, post(s, with(members)), http.StatusServiceUnavailable, "out_of_memory")
	}
}

// A shutdown that does not wait tells the listeners of a stream.
func TestStreamAndShutdown(t *testing.T) {
	sent := make(chan struct{}, 1)
	s := run(t, Config{DrainTimeout: 50 * time.Millisecond}, &fakeSinger{song: pieces(sent, nil)})
	ended := make(chan []map[string]any, 1)
	go func() {
		resp, err := http.Post(s.url+"/v1/audio/speech", "application/json", strings.NewReader(with(`"stream_format":"sse"`)))
		if err != nil {
			t.Error(err)
			ended <- nil
			return
		}
		defer resp.Body.Close()
		_, others := joinDeltas(t, events(t, resp.Body))
		ended <- others
	}()
	receive(t, sent, "piece")
	s.stop()
	others := receive(t, ended, "end of the stream")
	if len(others) != 1 || others[0]["error"].(map[string]any)["code"] != "draining" {
		t.Errorf("events %v", others)
	}
	if err := receive(t, s.done, "end of Run"); err != nil {
		t.Error(err)
	}
}

func TestListenerLeaves(t *testing.T) {
	sent := make(chan struct{}, 1)
	s, log := newTestServer(t, Config{}, &fakeSinger{song: pieces(sent, nil)})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ask(t, ctx, ts, `"stream":true`)
	receive(t, sent, "piece")
	leave()
	s.waitPlaces(t, 0)
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log says\n%s", log)
	}
}

// One that does not read its stream loses it, and others do not wait for it.
func TestSlowListener(t *testing.T) {
	m := &fakeSinger{song: func(_ context.Context, r engine.Request) (*engine.Song, error) {
		song := testSong(r)
		if r.Seed == 1 {
			for c := range song.Samples {
				song.Samples[c] = make([]float32, 1<<20)
			}
			for range 16 { // 64 MiB, more than sockets buffer
				if err := r.Sink(song.Samples); err != nil {
					return nil, err
				}
			}
		}
		return song, nil
	}}
	s, _ := newTestServer(t, Config{}, m)
	s.patience.reply, s.patience.rate = 300*time.Millisecond, 1<<30
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	for _, members := range []string{`"stream":true`, `"stream_format":"sse"`} {
		body := strings.Replace(with(members), "18446744073709551615", "1", 1)
		if _, err := io.WriteString(connect(t, ts, len(body)), body); err != nil {
			t.Fatal(err)
		}
		s.waitPlaces(t, 1)
		if w := post(s, validBody); w.Code != http.StatusOK {
			t.Errorf("a song beside it: %d %s", w.Code, w.Body)
		}
		s.waitPlaces(t, 0)
	}
}

// The time in which nothing is written does not count against a listener.
func TestPatienceCountsWriting(t *testing.T) {
	w := patientWriter{w: httptest.NewRecorder(), patience: patience{reply: time.Second, rate: 1000}}
	for range 3 {
		if _, err := w.Write(make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if w.written != 1500 || w.waited > 20*time.Millisecond {
		t.Errorf("%d bytes in %v", w.written, w.waited)
	}
}
