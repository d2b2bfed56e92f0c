package hub

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// fakeHub serves one repository. Handlers of a test may change what a file's answer is.
type fakeHub struct {
	*httptest.Server
	files    map[string][]byte
	requests atomic.Int64
	serve    func(w http.ResponseWriter, r *http.Request, data []byte) bool // nil for the usual
}

func newFakeHub(t *testing.T, files map[string][]byte) *fakeHub {
	h := &fakeHub{files: files}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/models/owner/model/revision/main" {
			json.NewEncoder(w).Encode(h.listing())
			return
		}
		data, ok := h.files[strings.TrimPrefix(r.URL.Path, "/owner/model/resolve/"+commit+"/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h.requests.Add(1)
		if h.serve == nil || !h.serve(w, r, data) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *fakeHub) listing() map[string]any {
	var siblings []map[string]any
	for name, data := range h.files {
		s := map[string]any{"rfilename": name, "size": len(data)}
		if strings.HasSuffix(name, ".safetensors") {
			sum := sha256.Sum256(data)
			s["lfs"] = map[string]any{"sha256": hex.EncodeToString(sum[:])}
			s["blobId"] = strings.Repeat("0", 40) // of the pointer, not of the contents
		} else {
			sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data))
			s["blobId"] = hex.EncodeToString(sum[:])
		}
		siblings = append(siblings, s)
	}
	return map[string]any{"sha": commit, "siblings": siblings, "cardData": map[string]any{"license": "other", "license_name": "a-licence"}}
}

func (h *fakeHub) client() *Client { return &Client{Endpoint: h.URL, HTTP: h.Server.Client()} }

func someBytes(n int) []byte {
	data := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(data)
	return data
}

// fetch brings the one file of a hub and returns what is in the folder.
func fetch(t *testing.T, ctx context.Context, h *fakeHub, dir string) ([]byte, error) {
	t.Helper()
	l, err := h.client().List(t.Context(), "owner/model", "main")
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Files) != 1 || l.Commit != commit || l.Licence != "a-licence" {
		t.Fatalf("listing %+v", l)
	}
	var counted int64
	err = h.client().Fetch(ctx, l, l.Files[0], dir, func(n int64) { counted += n })
	if err != nil {
		return nil, err
	}
	if counted != l.Files[0].Size {
		t.Errorf("progress counted %d bytes of %d", counted, l.Files[0].Size)
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(l.Files[0].Path)))
	if err != nil {
		t.Fatal(err)
	}
	return data, nil
}

func TestFetch(t *testing.T) {
	large := someBytes(300_000)
	for _, name := range []string{"transformer/w.safetensors", "config.json", "a b/ä.json", "empty.json"} {
		data := large
		if name == "empty.json" {
			data = nil
		}
		h := newFakeHub(t, map[string][]byte{name: data})
		dir := t.TempDir()
		for range 2 {
			got, err := fetch(t, t.Context(), h, dir)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
		if n := h.requests.Load(); n > 1 {
			t.Errorf("%s: asked for %d times", name, n)
		}
	}
}

// TestFetchGoesOn cuts the connection twice and expects the rest to be asked for.
func TestFetchGoesOn(t *testing.T) {
	data := someBytes(200_000)
	h := newFakeHub(t, map[string][]byte{"w.safetensors": data})
	var ranges []string
	h.serve = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) > 2 {
			return false
		}
		var from int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		w.Header().Set("Content-Length", fmt.Sprint(len(data)-from))
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(data[from : from+50_000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	got, err := fetch(t, t.Context(), h, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if len(ranges) != 3 || ranges[0] != "" || ranges[1] != "bytes=50000-" || ranges[2] != "bytes=100000-" {
		t.Errorf("ranges asked for: %q", ranges)
	}
}

// TestFetchPartial leaves something behind from an earlier attempt.
func TestFetchPartial(t *testing.T) {
	data := someBytes(10_000)
	tests := []struct {
		name     string
		left     []byte
		noRanges bool
		err      bool
	}{
		{name: "a beginning", left: data[:4000]},
		{name: "all of it", left: data},
		{name: "too much", left: append(bytes.Clone(data), 0)},
		{name: "a beginning, whole files only", left: data[:4000], noRanges: true},
		{name: "something else", left: make([]byte, 4000), err: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newFakeHub(t, map[string][]byte{"w.safetensors": data})
			if tt.noRanges {
				h.serve = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
					w.Write(data)
					return true
				}
			}
			dir := t.TempDir()
			part := filepath.Join(dir, "w.safetensors"+partial)
			if err := os.WriteFile(part, tt.left, 0o666); err != nil {
				t.Fatal(err)
			}
			got, err := fetch(t, t.Context(), h, dir)
			var wrong *ChecksumError
			switch {
			case tt.err && !errors.As(err, &wrong):
				t.Errorf("error %v, want a wrong checksum", err)
			case !tt.err && (err != nil || !bytes.Equal(got, data)):
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if _, err := os.Stat(part); err == nil {
				t.Error("the unfinished file is still there")
			}
		})
	}
}

func TestFetchCancelled(t *testing.T) {
	h := newFakeHub(t, map[string][]byte{"w.safetensors": someBytes(100_000)})
	ctx, cancel := context.WithCancelCause(t.Context())
	h.serve = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:30_000])
		w.(http.Flusher).Flush()
		cancel(errors.New("enough"))
		<-r.Context().Done()
		return true
	}
	dir := t.TempDir()
	if _, err := fetch(t, ctx, h, dir); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v, want the cause", err)
	}
	h.serve = nil
	if _, err := fetch(t, t.Context(), h, dir); err != nil {
		t.Error(err)
	}
}

func TestStatus(t *testing.T) {
	for code, want := range map[int]string{401: "HF_TOKEN", 403: "licence", 404: "no such", 500: "500"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
		}))
		c := &Client{Endpoint: s.URL, Token: "secret", HTTP: s.Client()}
		_, err := c.List(t.Context(), "owner/model", "main")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: error %v, want %q in it and no token", code, err, want)
		}
		s.Close()
	}
}

// TestListingRefuses tries listings that would write outside the folder or cannot be
// checked.
func TestListingRefuses(t *testing.T) {
	blob := strings.Repeat("a", 40)
	file := func(name string) string {
		return fmt.Sprintf(`{"sha":%q,"siblings":[{"rfilename":%q,"size":1,"blobId":%q}]}`, commit, name, blob)
	}
	if _, err := parseListing([]byte(file("vocoder/config.json"))); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "[]", "{}", `{"sha":"main"}`,
		file("../x"), file("/etc/x"), file("a/../../x"), file("a//b"), file(""), file(`a\b`), file("a\x00"), file("."),
		fmt.Sprintf(`{"sha":%q,"siblings":[{"rfilename":"a","size":1}]}`, commit),
		fmt.Sprintf(`{"sha":%q,"siblings":[{"rfilename":"a","blobId":%q}]}`, commit, blob),
		fmt.Sprintf(`{"sha":%q,"siblings":[{"rfilename":"a","size":-1,"blobId":%q}]}`, commit, blob),
		fmt.Sprintf(`{"sha":%q,"siblings":[{"rfilename":"a","size":1,"blobId":%q},{"rfilename":"a","size":1,"blobId":%q}]}`, commit, blob, blob),
	} {
		if l, err := parseListing([]byte(text)); err == nil {
			t.Errorf("%s: taken as %+v", text, l)
		}
	}
	for _, repo := range []string{"", "model", "a/b/c", "../b", "a/..", "a/b?c", "a/b c"} {
		if _, err := (&Client{}).List(t.Context(), repo, "main"); err == nil {
			t.Errorf("repository %q was taken", repo)
		}
	}
}

func FuzzListing(f *testing.F) {
	f.Add([]byte(`{"sha":"` + commit + `","siblings":[{"rfilename":"a/b","size":1,"blobId":"` + commit + `"}],"cardData":{"license":["x"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseListing(data)
		if err != nil {
			return
		}
		for _, file := range l.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Path)) || file.Size < 0 {
				t.Errorf("%+v", file)
			}
		}
	})
}
