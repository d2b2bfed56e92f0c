package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"skald/host/engine"
)

// soon is how long a test waits for what should happen at once.
const soon = 10 * time.Second

func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(soon):
		t.Fatalf("no %s after %v", what, soon)
		panic("unreachable")
	}
}

func TestQueueFull(t *testing.T) {
	for _, tt := range []struct{ atOnce, maxQueue, places int }{{1, -1, 1}, {1, 1, 2}, {1, 3, 4}, {3, -1, 3}, {2, 2, 4}} {
		began, end := make(chan struct{}, tt.places), make(chan struct{})
		s, _ := newTestServer(t, Config{MaxQueue: tt.maxQueue}, &fakeSinger{songs: tt.atOnce, song: waitSong(began, end)})
		replies := make(chan *httptest.ResponseRecorder, tt.places)
		for range tt.places {
			go func() { replies <- post(s, validBody) }()
			receive(t, began, "song")
		}
		w := post(s, validBody)
		e := wantError(t, w, http.StatusTooManyRequests, "queue_full")
		if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
		}
		if !strings.Contains(e.Error.Message, fmt.Sprint(tt.places, " songs")) {
			t.Errorf("message %q does not tell of %d songs", e.Error.Message, tt.places)
		}
		// What cannot be made is refused as such, queue or not.
		wantError(t, post(s, "{}"), http.StatusBadRequest, "missing_required_parameter")

		close(end)
		for range tt.places {
			if w := receive(t, replies, "reply"); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		if w := post(s, validBody); w.Code != http.StatusOK {
			t.Errorf("after the queue is empty: %d", w.Code)
		}
	}
}

// A key has its share of the queue, and the others keep theirs.
func TestSongsPerKey(t *testing.T) {
	began, end := make(chan struct{}, 8), make(chan struct{})
	s, _ := newTestServer(t, Config{APIKeys: []string{"a", "b"}, MaxSongsPerKey: 2}, &fakeSinger{song: waitSong(began, end)})
	replies := make(chan int, 8)
	song := func(key string) {
		go func() { replies <- post(s, validBody, "Authorization", "Bearer "+key).Code }()
		receive(t, began, "song")
	}
	song("a")
	song("a")
	w := post(s, validBody, "Authorization", "Bearer a")
	if e := wantError(t, w, http.StatusTooManyRequests, "key_limit"); !strings.Contains(e.Error.Message, "2 songs") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%q, Retry-After %q", e.Error.Message, w.Header().Get("Retry-After"))
	}
	song("b")
	close(end)
	for range 3 {
		if code := receive(t, replies, "reply"); code != http.StatusOK {
			t.Error(code)
		}
	}
	if w := post(s, validBody, "Authorization", "Bearer a"); w.Code != http.StatusOK {
		t.Errorf("after its songs: %d", w.Code)
	}

	// Without keys all callers are one, and only the queue bounds them.
	began, end = make(chan struct{}, 8), make(chan struct{})
	s, _ = newTestServer(t, Config{MaxSongsPerKey: 1}, &fakeSinger{song: waitSong(began, end)})
	song("")
	song("")
	close(end)
	receive(t, replies, "reply")
	receive(t, replies, "reply")
}

func TestSongTimeout(t *testing.T) {
	s, _ := newTestServer(t, Config{SongTimeout: 50 * time.Millisecond}, &fakeSinger{song: waitSong(make(chan struct{}, 1), nil)})
	w := post(s, validBody)
	wantError(t, w, http.StatusServiceUnavailable, "song_timeout")
	if w.Header().Get("X-Should-Retry") != "false" {
		t.Error("clients will try again at once")
	}
	s, _ = newTestServer(t, Config{SongTimeout: time.Minute}, &fakeSinger{})
	if w := post(s, validBody); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestClientLeaves(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	m := &fakeSinger{song: func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, context.Cause(ctx)
	}}
	s, log := newTestServer(t, Config{}, m)
	ts := httptest.NewServer(s.Handler())
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "POST", ts.URL+"/v1/audio/speech", strings.NewReader(validBody))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() {
		<-began
		leave()
	}()
	if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.Canceled) {
		t.Fatalf("the client got %v", err)
	}
	receive(t, ended, "end of the song")
	ts.Close() // waits for the handler
	if !strings.Contains(log.String(), "status=499") || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log says\n%s", log)
	}
	if s.places != 0 {
		t.Errorf("%d places are left over", s.places)
	}
}

// connect opens a connection and sends the head of a request whose body has a length.
func connect(t *testing.T, ts *httptest.Server, length int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	sendHead(t, c, length)
	return c
}

func sendHead(t *testing.T, c net.Conn, length int) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", length); err != nil {
		t.Fatal(err)
	}
}

func TestSlowBody(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	s.patience.body = 50 * time.Millisecond
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	resp, err := http.ReadResponse(bufio.NewReader(connect(t, ts, len(validBody))), nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := decodeError(t, resp.Body, resp.Header); resp.StatusCode != 400 || e.Error.Code != "body_timeout" {
		t.Errorf("%d %+v", resp.StatusCode, e)
	}
}

// A body that is announced to be too large is not waited for.
func TestLargeBodyAnnounced(t *testing.T) {
	s, _ := newTestServer(t, Config{}, &fakeSinger{})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	c := connect(t, ts, maxBodyBytes+1)
	defer c.Close() // before the server's Close, which waits for it
	if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := decodeError(t, resp.Body, resp.Header); resp.StatusCode != 413 || e.Error.Code != "request_too_large" {
		t.Errorf("%d %+v", resp.StatusCode, e)
	}
}

// The time limits of a body and of a reply end with them: a song may take longer, and so
// may the next request of the connection.
func TestTimeLimitsAreLifted(t *testing.T) {
	limit := 100 * time.Millisecond
	m := &fakeSinger{song: func(ctx context.Context, r engine.Request) (*engine.Song, error) {
		select {
		case <-time.After(2 * limit):
			return testSong(r), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	s, _ := newTestServer(t, Config{}, m)
	s.patience.body, s.patience.reply = limit, limit
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	c := connect(t, ts, len(validBody))
	r := bufio.NewReader(c)
	for i := range 3 {
		if i > 0 {
			sendHead(t, c, len(validBody))
		}
		if _, err := io.WriteString(c, validBody); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK || n < 12332 || err != nil {
			t.Errorf("request %d: %d, %d bytes, %v", i, resp.StatusCode, n, err)
		}
		time.Sleep(2 * limit)
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err = http.ReadResponse(r, nil); err != nil {
			t.Fatalf("request %d, health: %v", i, err)
		}
		if _, err = io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatalf("request %d, health: %v", i, err)
		}
	}
}

// A client that does not read its song loses it, and the place in the queue is free.
func TestSlowReader(t *testing.T) {
	m := &fakeSinger{song: func(_ context.Context, r engine.Request) (*engine.Song, error) {
		song := testSong(r)
		for c := range song.Samples {
			song.Samples[c] = make([]float32, 8<<20) // 32 MiB, more than sockets buffer
		}
		return song, nil
	}}
	s, _ := newTestServer(t, Config{MaxQueue: -1}, m)
	s.patience.reply, s.patience.rate = 100*time.Millisecond, 1<<30
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	if _, err := io.WriteString(connect(t, ts, len(validBody)), validBody); err != nil {
		t.Fatal(err)
	}
	s.waitPlaces(t, 1)
	s.waitPlaces(t, 0)
}

// waitPlaces waits until so many places of the queue are taken.
func (s *Server) waitPlaces(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		places := s.places
		s.mu.Unlock()
		if places == want {
			return
		}
	}
	t.Fatalf("there are not %d places taken after %v", want, soon)
}

// running is a server under Run.
type running struct {
	*Server
	url  string
	stop context.CancelFunc
	done chan error
}

func run(t *testing.T, c Config, m singer) *running {
	t.Helper()
	s, _ := newTestServer(t, c, m)
	return s.run(t)
}

func (s *Server) run(t *testing.T) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	r := &running{s, "http://" + l.Addr().String(), stop, make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, l) }()
	return r
}

type outcome struct {
	status int
	code   string
	err    error
}

func (r *running) sing(t *testing.T) <-chan outcome {
	replies := make(chan outcome, 1)
	go func() {
		resp, err := http.Post(r.url+"/v1/audio/speech", "application/json", strings.NewReader(validBody))
		if err != nil {
			replies <- outcome{err: err}
			return
		}
		defer resp.Body.Close()
		v := outcome{status: resp.StatusCode}
		if v.status != http.StatusOK {
			v.code = decodeError(t, resp.Body, resp.Header).Error.Code
		}
		replies <- v
	}()
	return replies
}

func TestShutdownFinishesSong(t *testing.T) {
	began, end := make(chan struct{}, 1), make(chan struct{})
	s := run(t, Config{DrainTimeout: soon}, &fakeSinger{song: waitSong(began, end)})
	first := s.sing(t)
	receive(t, began, "song")
	s.stop()
	receive(t, s.drainBegan(), "drain")

	// The running song goes on; the port still answers, and says what goes on.
	if v := receive(t, s.sing(t), "reply"); v != (outcome{status: 503, code: "draining"}) {
		t.Errorf("a new song got %+v", v)
	}
	resp, err := http.Get(s.url + "/readyz")
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %v, %v", resp, err)
	}
	close(end)
	if v := receive(t, first, "reply"); v != (outcome{status: 200}) {
		t.Errorf("the running song got %+v", v)
	}
	if err := receive(t, s.done, "end of Run"); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(s.url + "/healthz"); err == nil {
		t.Error("the port is still open")
	}
}

// drainBegan tells when the server has begun to drain.
func (r *running) drainBegan() <-chan struct{} {
	c := make(chan struct{})
	go func() {
		for {
			r.mu.Lock()
			draining := r.draining
			r.mu.Unlock()
			if draining {
				close(c)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return c
}

func TestShutdownCancelsSong(t *testing.T) {
	began := make(chan struct{}, 1)
	const drain = 100 * time.Millisecond
	s := run(t, Config{DrainTimeout: drain}, &fakeSinger{song: waitSong(began, nil)})
	song := s.sing(t)
	receive(t, began, "song")
	start := time.Now()
	s.stop()
	if v := receive(t, song, "reply"); v != (outcome{status: 503, code: "draining"}) {
		t.Errorf("the cancelled song got %+v", v)
	}
	if err := receive(t, s.done, "end of Run"); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < drain || took > drain+shutdownGrace {
		t.Errorf("shutdown took %v, want about %v", took, drain)
	}
}

func TestShutdownWithoutSongs(t *testing.T) {
	s := run(t, Config{}, nil)
	if resp, err := http.Get(s.url + "/healthz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	s.stop()
	if err := receive(t, s.done, "end of Run"); err != nil {
		t.Error(err)
	}
}

// listener has an address and is never asked for connections.
type listener struct{ addr net.Addr }

func (l listener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (l listener) Close() error              { return nil }
func (l listener) Addr() net.Addr            { return l.addr }

func TestListenersWithoutKey(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8000} }
	tests := []struct {
		addr net.Addr
		open bool // to others
	}{
		{tcp("127.0.0.1"), false}, {tcp("127.9.9.9"), false}, {tcp("::1"), false}, {tcp("::ffff:127.0.0.1"), false},
		{&net.UnixAddr{Name: "/tmp/skald.sock", Net: "unix"}, false},
		{tcp("0.0.0.0"), true}, {tcp("::"), true}, {tcp("192.0.2.1"), true}, {tcp("fe80::1"), true}, {&net.TCPAddr{Port: 8000}, true},
	}
	for _, tt := range tests {
		for _, c := range []Config{{}, {APIKeys: []string{"k"}}, {AllowNoKey: true}} {
			want := tt.open && len(c.APIKeys) == 0 && !c.AllowNoKey
			if err := c.CheckListener(tt.addr); (err != nil) != want {
				t.Errorf("%v with %d keys, AllowNoKey %v: %v", tt.addr, len(c.APIKeys), c.AllowNoKey, err)
			}
			s, _ := newTestServer(t, c, nil)
			if err := s.Run(t.Context(), listener{tt.addr}); errors.Is(err, net.ErrClosed) == want {
				t.Errorf("Run on %v with %d keys, AllowNoKey %v: %v", tt.addr, len(c.APIKeys), c.AllowNoKey, err)
			}
		}
	}
}
