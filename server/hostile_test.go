package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What strangers try, and what they get. docs/operating.md has it as a table.
func TestStrangers(t *testing.T) {
	s, _ := newTestServer(t, Config{APIKeys: []string{"k"}, CORSOrigins: []string{"https://page.example"}}, &fakeSinger{})
	tests := []struct {
		what, method, path string
		header             []string
		status             int
	}{
		{"no key", "GET", "/v1/models", nil, 401},
		{"wrong key", "GET", "/v1/models", []string{"Authorization", "Bearer x"}, 401},
		{"key in the query", "GET", "/v1/models?api_key=k", nil, 401},
		{"key as user", "GET", "/v1/models", []string{"Authorization", "Basic azo="}, 401},
		{"key under another name", "GET", "/v1/models", []string{"X-Api-Key", "k"}, 401},
		{"figures without a key", "GET", "/metrics", nil, 401},
		{"path traversal", "GET", "/v1/models/../../etc/passwd", []string{"Authorization", "Bearer k"}, 404},
		{"encoded path traversal", "GET", "/%2e%2e/%2e%2e/etc/passwd", nil, 404},
		{"path traversal as a model", "GET", "/v1/models/..%2f..%2fetc%2fpasswd", []string{"Authorization", "Bearer k"}, 404},
		{"profiles", "GET", "/debug/pprof/", nil, 404},
		{"another method", "TRACE", "/v1/models", nil, 405},
		{"preflight of another page", "OPTIONS", "/v1/audio/speech", []string{"Origin", "https://other.example", "Access-Control-Request-Method", "POST"}, 405},
	}
	for _, tt := range tests {
		w := do(s, tt.method, tt.path, "", tt.header...)
		e := decodeError(t, w.Body, w.Header())
		if w.Code != tt.status || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %s, headers %v", tt.what, w.Code, e.Error.Message, w.Header())
		}
		if strings.Contains(e.Error.Message, "root:") {
			t.Errorf("%s: %s", tt.what, e.Error.Message)
		}
	}
	t.Logf("%d attempts", len(tests))
}

func TestHugeHeaders(t *testing.T) {
	s := run(t, Config{}, &fakeSinger{})
	for _, head := range []string{
		"X-Huge: " + strings.Repeat("x", 1<<20),
		strings.Repeat("X-Many: x\r\n", 100000),
		"Cookie: " + strings.Repeat("y", 80<<10),
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		// The server may stop reading and reset the connection before all is sent.
		_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", head)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%.20s: %s", head, resp.Status)
		}
		c.Close()
	}
	if resp, err := http.Get(s.url + "/healthz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("afterwards: %v, %v", resp, err)
	}
}

// TestSlowConnections opens as many connections as the system allows, up to 10,000, that
// never finish the head of a request: others are served, and the slow ones are closed.
func TestSlowConnections(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n := min(10000, int(limit.Cur)/2-200) // both ends are in this process
	if testing.Short() {
		n = min(n, 1000)
	}
	m := &fakeSinger{}
	s, _ := newTestServer(t, Config{}, m)
	s.patience.head = 3 * time.Second
	r := s.run(t)
	before := heap()
	conns := make([]net.Conn, 0, n)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range n {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatalf("connection %d: %v", len(conns), err)
		}
		conns = append(conns, c)
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: "); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	resp, err := http.Post(r.url+"/v1/audio/speech", "application/json", strings.NewReader(validBody))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("a song beside them: %v, %v", resp, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	resp.Body.Close()
	t.Logf("%d slow connections: a song beside them took %v, %d bytes of memory for each", n, time.Since(start), (heap()-before)/int64(n))
	for _, c := range conns {
		if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("a slow connection got an answer")
		} else if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Fatal("a slow connection is left open")
		}
	}
}

// heap is the memory in use, of the stacks too.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestManyDisconnects leaves songs of the built-in model at random moments; nothing of
// them stays behind.
func TestManyDisconnects(t *testing.T) {
	s := openBuiltIn(t, Config{MaxQueue: 64})
	ts := httptest.NewServer(s.Handler())
	defer ts.Close()
	m, _ := s.ready()
	post(s, `{"input":"la","prompt":"calm","duration":0.04}`)
	ts.Client().CloseIdleConnections()
	goroutines, blocks := runtime.NumGoroutine(), m.Usage().KVBlocksTaken
	n := 1000
	if testing.Short() {
		n = 200
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	delays := make([]time.Duration, n)
	for i := range delays {
		delays[i] = time.Duration(rnd.IntN(200)) * time.Millisecond
	}
	var all sync.WaitGroup
	places := make(chan struct{}, 8)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			ctx, leave := context.WithTimeout(t.Context(), delays[i])
			defer leave()
			body := fmt.Sprintf(`{"input":"la","prompt":"calm","duration":%d,"steps":8,"seed":%d,"stream":%v}`, 1+i%16, i, i%2 == 0)
			r, err := http.NewRequestWithContext(ctx, "POST", ts.URL+"/v1/audio/speech", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			if resp, err := ts.Client().Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	start := time.Now()
	s.waitPlaces(t, 0)
	for {
		waiting, running := m.Busy()
		if waiting+running == 0 && m.Usage().KVBlocksTaken <= blocks+1 {
			break
		}
		if time.Since(start) > soon {
			t.Fatalf("%d songs wait, %d are made, %d blocks are taken", waiting, running, m.Usage().KVBlocksTaken)
		}
		time.Sleep(time.Millisecond)
	}
	idle := time.Since(start)
	ts.Client().CloseIdleConnections()
	for deadline := time.Now().Add(soon); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
	var left, done float64
	var by []string
	for name, v := range scrape(t, s) {
		if stage, ok := strings.CutPrefix(name, "skald_client_disconnects_total"); ok && v > 0 {
			left += v
			by = append(by, fmt.Sprint(stage, " ", v))
		}
		if name == `skald_songs_total{result="sung"}` {
			done = v - 1 // the first
		}
	}
	slices.Sort(by)
	// A client that left before its request was read is not counted at all.
	if left < float64(n/2) || left+done > float64(n) {
		t.Errorf("%v disconnects and %v songs are counted of %d", left, done, n)
	}
	t.Logf("of %d clients %v left (%s), %v stayed; all was quiet %v after the last", n, left, strings.Join(by, ", "), done, idle)
}
