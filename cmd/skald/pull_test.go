package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hubOf serves a folder as the Hub would serve a repository with these files.
func hubOf(t *testing.T, dir string) *httptest.Server {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	var siblings []map[string]any
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		sum := sha256.Sum256(data)
		siblings = append(siblings, map[string]any{"rfilename": filepath.ToSlash(name), "size": len(data),
			"lfs": map[string]any{"sha256": hex.EncodeToString(sum[:])}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/some/model/revision/main", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": siblings})
	})
	mux.Handle("GET /some/model/resolve/"+commit+"/", http.StripPrefix("/some/model/resolve/"+commit, http.FileServer(http.Dir(dir))))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestPull(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if got := skald(t, "synth", "--shape", "tiny", source); got.code != 0 {
		t.Fatal(got.stderr)
	}
	for name, text := range map[string]string{"demo.mp3": "x", "other/model.safetensors": "x", "LICENSE": "terms"} {
		path := filepath.Join(source, name)
		os.MkdirAll(filepath.Dir(path), 0o777)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	hub := hubOf(t, source)
	pull := func(args ...string) result {
		return skald(t, append([]string{"pull", "--repo", "some/model", "--endpoint", hub.URL}, args...)...)
	}

	dir := filepath.Join(t.TempDir(), "model")
	if got := pull("--dry-run", dir); got.code != 0 || !strings.Contains(got.stdout, "LICENSE") || strings.Contains(got.stdout, "demo.mp3") {
		t.Errorf("dry run: %+v", got)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a dry run made the folder")
	}
	got := pull(dir)
	if got.code != 0 || !strings.Contains(got.stdout, "is complete") || !strings.Contains(got.stdout, "licence of the weights") {
		t.Fatalf("%+v", got)
	}
	if got := skald(t, "inspect", dir); got.code != 0 {
		t.Errorf("inspect: %+v", got)
	}
	for name, want := range map[string]bool{"LICENSE": true, "tokenizer/tokenizer.json": true, "demo.mp3": false, "other": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: there is %v, want %v", name, err == nil, want)
		}
	}
	if got := pull(dir); got.code != 0 || !strings.Contains(got.stdout, "0 B are missing") {
		t.Errorf("again: %+v", got)
	}

	// A checkpoint that lacks something is fetched and then refused.
	os.Remove(filepath.Join(source, "vocoder", "config.json"))
	hub = hubOf(t, source)
	if got := pull(filepath.Join(t.TempDir(), "broken")); got.code != 1 || !strings.Contains(got.stderr, "vocoder") {
		t.Errorf("without a vocoder's settings: %+v", got)
	}
	if got := skald(t, "pull", "--repo", "some/other", "--endpoint", hub.URL, dir); got.code != 1 || !strings.Contains(got.stderr, "no such repository") {
		t.Errorf("unknown repository: %+v", got)
	}
}
