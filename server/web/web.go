// Package web is the page that a server answers GET / with: write a song, watch it being
// made, listen to it. The page is plain modules and one style sheet, embedded as they
// lie in the folder page, and asks for nothing that the server itself does not have.
//
// Its files are served under a path that holds a checksum of them all, so that browsers
// keep them for ever and never mix two versions; only the page's own few lines are asked
// for again, by their ETag.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed page
var files embed.FS

// policy lets the page use its own server and nothing else: no inline script, no foreign
// address, no frame around it. The hash is that of the style sheet which wavesurfer.js
// puts into its shadow root.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' '" + waveStyle + "'; " +
	"img-src 'self' data:; media-src 'self' blob:; connect-src 'self' blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const waveStyle = "sha256-Y/8t1dAKa3ay+RZEiEFEDr8dFiQhpaFvYXXUfT3p6ZU="

// file is one answer, ready to be sent.
type file struct {
	mediaType string
	plain     []byte
	zipped    []byte // nil where that saves nothing
	etag      string
}

// site is the page and its files.
type site struct {
	version string
	index   *file
	assets  map[string]*file
}

var load = sync.OnceValue(func() *site {
	s, err := newSite(files)
	if err != nil {
		panic(err) // what is embedded is wrong, which the tests would have found
	}
	return s
})

// newSite reads the folder page.
func newSite(embedded fs.FS) (*site, error) {
	s := &site{assets: map[string]*file{}}
	sum := sha256.New()
	var index []byte
	var scripts []string
	err := fs.WalkDir(embedded, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(embedded, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		sum.Write(data)
		name = strings.TrimPrefix(name, "page/")
		if name == "index.html" {
			index = data
			return nil
		}
		if path.Ext(name) == ".js" && path.Dir(name) == "." {
			scripts = append(scripts, name)
		}
		s.assets[name], err = newFile(name, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.version = hex.EncodeToString(sum.Sum(nil))[:16]
	// The modules are named in advance, or the browser would find them one after another.
	var preloads strings.Builder
	slices.Sort(scripts)
	for _, name := range scripts {
		fmt.Fprintf(&preloads, "<link rel=\"modulepreload\" href=\"{{assets}}/%s\">\n", name)
	}
	index = bytes.Replace(index, []byte("{{preloads}}\n"), []byte(preloads.String()), 1)
	index = bytes.ReplaceAll(index, []byte("{{assets}}"), []byte("assets/"+s.version))
	s.index, err = newFile("index.html", index)
	return s, err
}

// mediaTypes are those of all files there may be: what is not here does not belong.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

func newFile(name string, data []byte) (*file, error) {
	media, ok := mediaTypes[path.Ext(name)]
	if !ok {
		return nil, fmt.Errorf("page/%s: no media type for such a file", name)
	}
	sum := sha256.Sum256(data)
	f := &file{mediaType: media, plain: data, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	var zipped bytes.Buffer
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if zipped.Len() < len(data) {
		f.zipped = zipped.Bytes()
	}
	return f, nil
}

// Page answers GET / .
func Page(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	load().index.serve(w, r)
}

// Asset answers with the file of a path such as /0123456789abcdef/app.js, and reports
// whether there is one.
func Asset(w http.ResponseWriter, r *http.Request, name string) bool {
	s := load()
	rest, ok := strings.CutPrefix(name, "/"+s.version+"/")
	f := s.assets[rest]
	if !ok || f == nil {
		return false
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	f.serve(w, r)
	return true
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Add("Vary", "Accept-Encoding")
	body, etag := f.plain, f.etag
	zip := f.zipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding"))
	if zip {
		body, etag = f.zipped, strings.TrimSuffix(etag, `"`)+`-gzip"`
	}
	h.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if zip {
		h.Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that is gone needs no page
	}
}

// acceptsGzip reads Accept-Encoding: gzip is fine unless it is not named or has q=0.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		if c := strings.TrimSpace(coding); !strings.EqualFold(c, "gzip") {
			continue
		}
		q, ok := strings.CutPrefix(strings.ReplaceAll(parameters, " ", ""), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !ok || err == nil && weight > 0
	}
	return false
}

func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == etag || part == "*" {
			return true
		}
	}
	return false
}
