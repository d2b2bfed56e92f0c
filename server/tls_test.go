package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skald/host/engine"
)

// TestStreamsOverHTTP2 does over HTTPS what other tests do over HTTP/1.1.
func TestStreamsOverHTTP2(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate
	defer certified.Close()
	sent, goOn := make(chan struct{}, 1), make(chan error, 1)
	m := &fakeSinger{song: pieces(sent, goOn)}
	s := run(t, Config{TLS: &tls.Config{Certificates: certified.TLS.Certificates}}, m)
	client := certified.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	ask := func(ctx context.Context, members string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, "POST", strings.Replace(s.url, "http", "https", 1)+"/v1/audio/speech", strings.NewReader(with(members)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.ProtoMajor != 2 {
			t.Fatalf("served by %s", resp.Proto)
		}
		return resp
	}
	const piece = 4 * 3072

	resp := ask(t.Context(), `"stream":true`)
	if _, err := io.ReadFull(resp.Body, make([]byte, 44+piece)); err != nil {
		t.Fatal(err) // the first piece must not wait for the second
	}
	receive(t, sent, "piece")
	goOn <- nil
	if n, err := io.Copy(io.Discard, resp.Body); n != piece || err != nil || resp.Trailer.Get("Skald-Frames") != "1" {
		t.Errorf("%d bytes, %v, trailers %v", n, err, resp.Trailer)
	}

	resp = ask(t.Context(), `"stream":true`)
	receive(t, sent, "piece")
	goOn <- errors.New("out of tune")
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("a stream that failed seems whole")
	}

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ask(ctx, `"stream":true`)
	receive(t, sent, "piece")
	leave()
	s.waitPlaces(t, 0)

	// A stream that is not read, while another on its connection is.
	m.song = func(_ context.Context, r engine.Request) (*engine.Song, error) {
		song := testSong(r)
		for c := range song.Samples {
			song.Samples[c] = make([]float32, 4<<20)
		}
		return song, nil
	}
	s.patience.reply, s.patience.rate = 300*time.Millisecond, 1<<30
	slow := ask(t.Context(), `"stream":true`)
	if resp, err := client.Get(strings.Replace(s.url, "http", "https", 1) + "/healthz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz beside it: %v, %v", resp, err)
	}
	s.waitPlaces(t, 0)
	if _, err := io.Copy(io.Discard, slow.Body); err == nil {
		t.Error("a stream that was broken off seems whole")
	}
	s.stop()
	if err := receive(t, s.done, "end of Run"); err != nil {
		t.Error(err)
	}
}
