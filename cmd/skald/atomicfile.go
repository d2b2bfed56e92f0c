package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// atomicFile is a file that appears under its name, replacing what was there, only
// when it is complete.
type atomicFile struct {
	*os.File
	path string // "" when the target is written in place
}

// createAtomic opens a file beside path to write to. A target that is not a regular
// file (/dev/null, a named pipe) is written in place.
func createAtomic(path string) (*atomicFile, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // replace what a link points to, not the link
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: name a file", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &atomicFile{File: f}, err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:8]+".tmp")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", path, errors.Unwrap(err))
	}
	return &atomicFile{File: f, path: path}, nil
}

// commit puts the file in place. Without it, discard removes what was written.
func (f *atomicFile) commit() error {
	if f.path == "" {
		return f.Close()
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	err := os.Rename(f.Name(), f.path)
	if err == nil {
		f.path = ""
	}
	return err
}

// discard removes an uncommitted file; after commit it does nothing.
func (f *atomicFile) discard() {
	if f.path != "" {
		f.Close()
		os.Remove(f.Name())
	}
}
