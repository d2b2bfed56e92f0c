package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// formatVersion is that of the state directory, kept in its file VERSION.
const formatVersion = 1

// migrations bring a state directory from the version that is their index to the next.
// There is no version before 1.
var migrations = []func(dir string) error{1: nil}

// ErrLocked says that another process uses a state directory.
var ErrLocked = errors.New("another server uses it")

// stateDir is an open state directory.
type stateDir struct {
	path string
	lock *os.File
}

// openStateDir makes a folder if there is none, locks it, and brings it to this version.
func openStateDir(path string) (d *stateDir, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, "LOCK"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("state directory %s: %w: %w", path, ErrLocked, err)
	}
	d = &stateDir{path, f}
	if err := d.migrate(); err != nil {
		d.close()
		return nil, fmt.Errorf("state directory %s: %w", path, err)
	}
	return d, nil
}

func (d *stateDir) close() error { return d.lock.Close() }

// migrate reads the version and brings the folder to formatVersion.
func (d *stateDir) migrate() error {
	version, err := d.version()
	if err != nil {
		return err
	}
	if version > formatVersion {
		return fmt.Errorf("its version is %d and this program knows %d: it was written by a newer program, use that one or another folder", version, formatVersion)
	}
	for ; version > 0 && version < formatVersion; version++ {
		if err := migrations[version](d.path); err != nil {
			return fmt.Errorf("migration from version %d: %w", version, err)
		}
		if err := d.setVersion(version + 1); err != nil {
			return err
		}
	}
	if version == 0 {
		return d.setVersion(formatVersion)
	}
	return nil
}

// version is 0 for a new folder. A folder with other things in it is not ours.
func (d *stateDir) version() (int, error) {
	data, err := os.ReadFile(filepath.Join(d.path, "VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(d.path)
		for _, e := range entries {
			// A cut of power may leave the store without the file.
			if name := e.Name(); name != "LOCK" && name != "jetstream" && !strings.HasPrefix(name, "VERSION") {
				return 0, fmt.Errorf("it holds %s and no VERSION: name a folder that is empty or does not exist", name)
			}
		}
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if len(strings.TrimSpace(string(data))) == 0 {
		return 0, nil // cut off before it reached the disk
	}
	if err != nil || v < 1 {
		return 0, fmt.Errorf("its VERSION is %.20q, expected a number", data)
	}
	return v, nil
}

// setVersion replaces the file as a whole.
func (d *stateDir) setVersion(v int) error {
	name := filepath.Join(d.path, "VERSION")
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, v)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
