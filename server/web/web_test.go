package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	method := http.MethodGet
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if path == "/" {
		Page(w, r)
	} else if !Asset(w, r, strings.TrimPrefix(path, "/assets")) {
		w.WriteHeader(http.StatusNotFound)
	}
	return w
}

// TestFiles asks for the page and for everything it names, and checks that each is there,
// kept by browsers for as long as it may be, and smaller when it is compressed.
func TestFiles(t *testing.T) {
	page := get(t, "/")
	if page.Code != http.StatusOK || page.Header().Get("Cache-Control") != "no-cache" || strings.Contains(page.Body.String(), "{{") {
		t.Fatalf("%d %v\n%s", page.Code, page.Header(), page.Body)
	}
	names := regexp.MustCompile(`(?:href|src)="(assets/[^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	seen := map[string]bool{}
	plain, sent := page.Body.Len(), 0
	for _, n := range names {
		path := "/" + n[1]
		if seen[path] {
			continue
		}
		seen[path] = true
		w, zipped := get(t, path), get(t, path, "Accept-Encoding", "br, gzip")
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		plain, sent = plain+w.Body.Len(), sent+zipped.Body.Len()
		z, err := gzip.NewReader(zipped.Body)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if data, err := io.ReadAll(z); err != nil || !bytes.Equal(data, w.Body.Bytes()) {
			t.Errorf("%s: unpacked it is another file: %v", path, err)
		}
	}
	if len(seen) < 15 || sent*2 > plain {
		t.Errorf("%d files of %d bytes, %d compressed", len(seen), plain, sent)
	}
	t.Logf("%d files, %d bytes, %d compressed", len(seen), plain, sent)
}

func TestCaching(t *testing.T) {
	for _, encoding := range []string{"", "gzip", "gzip;q=0", "identity, GZIP; q=0.5", "*"} {
		w := get(t, "/", "Accept-Encoding", encoding)
		etag := w.Header().Get("ETag")
		zipped := encoding == "gzip" || strings.Contains(encoding, "GZIP")
		if (w.Header().Get("Content-Encoding") == "gzip") != zipped || etag == "" || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: %v", encoding, w.Header())
		}
		for tag, status := range map[string]int{etag: 304, `W/` + etag: 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200} {
			again := get(t, "/", "Accept-Encoding", encoding, "If-None-Match", tag)
			if again.Code != status || (status == 304) != (again.Body.Len() == 0) || again.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("If-None-Match %s: %d with %d bytes, want %d", tag, again.Code, again.Body.Len(), status)
			}
		}
	}
	for _, path := range []string{"/assets/", "/assets/app.js", "/assets/0000000000000000/app.js", "/assets/" + load().version + "/", "/assets/" + load().version + "/../web.go"} {
		if w := get(t, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	r, w := httptest.NewRequest(http.MethodHead, "/", nil), httptest.NewRecorder()
	if Page(w, r); w.Body.Len() != 0 || w.Header().Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d bytes, %v", w.Body.Len(), w.Header())
	}
}

// TestPolicy checks that the policy allows the style sheet of wavesurfer.js, with the
// height that the player gives it, and nothing inline besides; and that the page has
// nothing inline of its own.
func TestPolicy(t *testing.T) {
	script := string(load().assets["vendor/wavesurfer.esm.js"].plain)
	_, style, ok := strings.Cut(script, "<style${")
	if !ok {
		t.Fatal("wavesurfer.js has no style sheet where it had one")
	}
	style, _, _ = strings.Cut(style, "</style>")
	_, style, _ = strings.Cut(style, "}>")
	height := regexp.MustCompile(`const height = (\d+);`).FindSubmatch(load().assets["player.js"].plain)
	if height == nil {
		t.Fatal("player.js names no height")
	}
	style = regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(strings.ReplaceAll(style, `\n`, "\n"), string(height[1]))
	sum := sha256.Sum256([]byte(style))
	if want := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); want != waveStyle {
		t.Errorf("the policy has %s, the style sheet is %s", waveStyle, want)
	}
	header := get(t, "/").Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(header, part) {
			t.Errorf("no %s in %s", part, header)
		}
	}
	if strings.Contains(header, "unsafe") || strings.Contains(header, "http") {
		t.Errorf("the policy is loose: %s", header)
	}
	page := get(t, "/").Body.String()
	if found := regexp.MustCompile(`(?i)<style|<script(?:[^>]*)>[^<]|\son\w+=|style=|https?:`).FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
}

// TestNewSite checks that the version follows every file, and that a file of an unknown
// kind is not embedded unseen.
func TestNewSite(t *testing.T) {
	folder := fstest.MapFS{"page/index.html": {Data: []byte("{{preloads}}\n{{assets}}")}, "page/a.js": {Data: []byte("1")}}
	first, err := newSite(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := `<link rel="modulepreload" href="assets/` + first.version + "/a.js\">\nassets/" + first.version; string(first.index.plain) != want {
		t.Errorf("the page is %q, want %q", first.index.plain, want)
	}
	folder["page/a.js"] = &fstest.MapFile{Data: []byte("2")}
	if second, err := newSite(folder); err != nil || second.version == first.version {
		t.Errorf("another file, the same version %s: %v", first.version, err)
	}
	folder["page/a.exe"] = &fstest.MapFile{}
	if _, err := newSite(folder); err == nil {
		t.Error("a file without a media type is taken")
	}
}
