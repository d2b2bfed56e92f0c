package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	attempts = 6                // for one file, counting only those that brought nothing
	silence  = 60 * time.Second // a connection without a byte for so long is given up
	partial  = ".part"          // behind the name of an unfinished file
)

// ChecksumError is a file whose contents are not what the listing promised.
type ChecksumError struct {
	Path      string
	Want, Got string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s: its checksum is %s, the Hub promised %s: it was damaged on the way and has been removed; fetch again", e.Path, e.Got, e.Want)
}

// Fetch brings one file of a listing into dir, unless it is there with the right size:
// a file takes its name only after its checksum was right. What an earlier attempt left
// is kept and counted. progress gets the bytes that came, negative when some are thrown
// away; it may be nil.
func (c *Client) Fetch(ctx context.Context, l Listing, f File, dir string, progress func(bytes int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	target := filepath.Join(dir, filepath.FromSlash(f.Path))
	switch info, err := os.Stat(target); {
	case err == nil && info.Mode().IsRegular() && info.Size() == f.Size:
		progress(f.Size)
		return nil
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is in the way: it is not a file", target)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	out, err := os.OpenFile(target+partial, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := newSum(f)
	have, err := io.Copy(sum, io.LimitReader(out, f.Size+1))
	if err != nil {
		return err
	}
	if have > f.Size { // of some other file
		if have, err = restart(out, sum); err != nil {
			return err
		}
	}
	progress(have)
	if err := c.fill(ctx, l, f, out, sum, have, progress); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if got, want := sum.String(), sum.want; got != want {
		os.Remove(out.Name())
		return &ChecksumError{Path: f.Path, Want: want, Got: got}
	}
	if err := out.Sync(); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), target)
}

// fill appends to out what is missing of f, in as many attempts as it takes while each
// brings something.
func (c *Client) fill(ctx context.Context, l Listing, f File, out *os.File, sum *sum, have int64, progress func(int64)) error {
	parts := strings.Split(f.Path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	address := c.Endpoint + "/" + l.Repo + "/resolve/" + l.Commit + "/" + strings.Join(parts, "/")
	for failed := 0; have < f.Size; {
		n, err := c.attempt(ctx, address, have, f.Size-have, io.MultiWriter(out, sum), progress)
		have += n
		if have == f.Size {
			break
		}
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		var status *StatusError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errNoRange):
			progress(-have)
			var zero error
			if have, zero = restart(out, sum); zero != nil {
				return zero
			}
		case errors.As(err, &status) && status.Code < 500 && status.Code != http.StatusTooManyRequests:
			return err
		}
		if n > 0 {
			failed = 0
		}
		if failed++; failed >= attempts {
			return fmt.Errorf("given up after %d attempts in a row without a byte, with %d of %d bytes: %w", attempts, have, f.Size, err)
		}
		pause := time.NewTimer(time.Second << (failed - 1) / 2)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
	}
	return nil
}

// attempt copies at most want bytes from byte from on, and ends a connection that has
// fallen silent.
func (c *Client) attempt(ctx context.Context, address string, from, want int64, w io.Writer, progress func(int64)) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() {
		cancel(fmt.Errorf("no byte came for %s", silence))
	})
	defer watch.Stop()
	body, err := c.get(ctx, address, from)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.Copy(w, &counted{io.LimitReader(body, want), func(n int) {
		watch.Reset(silence)
		progress(int64(n))
	}})
}

// restart empties a file and its sum.
func restart(out *os.File, sum *sum) (int64, error) {
	sum.reset()
	if err := out.Truncate(0); err != nil {
		return 0, err
	}
	_, err := out.Seek(0, io.SeekStart)
	return 0, err
}

type counted struct {
	io.Reader
	saw func(int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n > 0 {
		c.saw(n)
	}
	return n, err
}

// sum is the checksum that a listing gives for a file.
type sum struct {
	hash.Hash
	begin string
	want  string
}

func newSum(f File) *sum {
	s := &sum{Hash: sha256.New(), want: f.SHA256}
	if f.SHA256 == "" {
		// Git's sum of a blob, the only one there is for small files.
		s = &sum{Hash: sha1.New(), want: f.BlobID, begin: fmt.Sprintf("blob %d\x00", f.Size)}
	}
	s.reset()
	return s
}

func (s *sum) reset() {
	s.Reset()
	io.WriteString(s, s.begin)
}

func (s *sum) String() string { return hex.EncodeToString(s.Sum(nil)) }
