// Package hub fetches the files of a model from the Hugging Face Hub: it asks which
// files one revision has, takes those that are wanted, goes on where an earlier attempt
// stopped, and keeps a file only when its checksum is the one that the Hub promised.
package hub

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

const (
	maxListing = 16 << 20 // bytes of a listing
	maxFiles   = 10_000
)

// Client talks to one Hub.
type Client struct {
	Endpoint string // such as https://huggingface.co, without a slash at the end
	Token    string // "" for none
	HTTP     *http.Client
}

// File is one file of a listing.
type File struct {
	Path string // with forward slashes, local to the folder
	Size int64
	// SHA256 is the sum of the contents; BlobID is git's: the sum of a header and the
	// contents. The Hub gives the first for large files and the second for small ones.
	SHA256, BlobID string
}

// Listing is what a revision holds.
type Listing struct {
	Repo    string
	Commit  string // 40 hex digits
	Files   []File
	Licence string // as its card names it, "" when it does not
}

// StatusError is an answer that is not the one asked for.
type StatusError struct {
	URL  string
	Code int
}

func (e *StatusError) Error() string {
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("%s: the Hub refuses access (%d): accept the model's licence on its page, and give a token of your account in HF_TOKEN", e.URL, e.Code)
	case http.StatusNotFound:
		return fmt.Sprintf("%s: no such repository, revision or file (404); a private one needs a token in HF_TOKEN", e.URL)
	}
	return fmt.Sprintf("%s: the Hub answers %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// List asks for the files of a revision: a branch, a tag or a commit.
func (c *Client) List(ctx context.Context, repo, revision string) (Listing, error) {
	if !validRepo(repo) {
		return Listing{}, fmt.Errorf("repository %q: want OWNER/NAME of letters, digits, dots, dashes and underscores", repo)
	}
	address := c.Endpoint + "/api/models/" + repo + "/revision/" + url.PathEscape(revision) + "?blobs=true"
	body, err := c.get(ctx, address, 0)
	if err != nil {
		return Listing{}, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxListing+1))
	if err != nil {
		return Listing{}, err
	}
	if len(data) > maxListing {
		return Listing{}, fmt.Errorf("%s: the list of files is longer than %d bytes", address, maxListing)
	}
	l, err := parseListing(data)
	if err != nil {
		return Listing{}, fmt.Errorf("%s: %w", address, err)
	}
	l.Repo = repo
	return l, nil
}

// parseListing reads the Hub's description of a revision. It knows much more about a
// model than is needed here, so unknown members are passed over.
func parseListing(data []byte) (Listing, error) {
	var answer struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name   string `json:"rfilename"`
			Size   *int64 `json:"size"`
			BlobID string `json:"blobId"`
			LFS    *struct {
				SHA256 string `json:"sha256"`
			} `json:"lfs"`
		} `json:"siblings"`
		Card struct {
			Licence any `json:"license"`
			Name    any `json:"license_name"`
			Link    any `json:"license_link"`
		} `json:"cardData"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return Listing{}, fmt.Errorf("the list of files is not what the Hub usually sends: %w", err)
	}
	if !isHex(answer.SHA, 40) {
		return Listing{}, fmt.Errorf("the list of files names the commit %q: want 40 hex digits", answer.SHA)
	}
	if len(answer.Siblings) > maxFiles {
		return Listing{}, fmt.Errorf("the list has %d files, at most %d are supported", len(answer.Siblings), maxFiles)
	}
	l := Listing{Commit: answer.SHA}
	var licence []string
	for _, v := range []any{answer.Card.Name, answer.Card.Licence, answer.Card.Link} {
		if s, ok := v.(string); ok && s != "" && s != "other" {
			licence = append(licence, s)
		}
	}
	l.Licence = strings.Join(licence, ", ")
	seen := map[string]bool{}
	for _, s := range answer.Siblings {
		f := File{Path: s.Name, BlobID: s.BlobID}
		if s.LFS != nil {
			f.SHA256 = s.LFS.SHA256
		}
		switch {
		case f.Path == "." || !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) != f.Path || strings.ContainsAny(f.Path, "\\\x00"):
			return Listing{}, fmt.Errorf("the list names the file %q, which would not lie in the folder", f.Path)
		case seen[f.Path]:
			return Listing{}, fmt.Errorf("the list names %q twice", f.Path)
		case s.Size == nil || *s.Size < 0:
			return Listing{}, fmt.Errorf("the list gives no size for %q", f.Path)
		case !isHex(f.SHA256, 64) && !isHex(f.BlobID, 40):
			return Listing{}, fmt.Errorf("the list gives no checksum for %q", f.Path)
		}
		f.Size = *s.Size
		seen[f.Path] = true
		l.Files = append(l.Files, f)
	}
	return l, nil
}

func isHex(s string, n int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == n
}

func validRepo(repo string) bool {
	owner, name, ok := strings.Cut(repo, "/")
	return ok && validName(owner) && validName(name)
}

func validName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 96 && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) < 0
}

// get opens a body from byte from on. The HTTP client drops the token when a redirect
// leads to another host.
func (c *Client) get(ctx context.Context, address string, from int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	// Sums and sizes are those of the bytes as stored.
	req.Header.Set("Accept-Encoding", "identity")
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	want := http.StatusOK
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		want = http.StatusPartialContent
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == want && from > 0 && !strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from)) {
		res.Body.Close()
		return nil, fmt.Errorf("%s: asked from byte %d, the answer is %q", address, from, res.Header.Get("Content-Range"))
	}
	if res.StatusCode == http.StatusOK && from > 0 {
		res.Body.Close()
		return nil, errNoRange
	}
	if res.StatusCode != want {
		res.Body.Close()
		return nil, &StatusError{URL: address, Code: res.StatusCode}
	}
	return res.Body, nil
}

// errNoRange says that the other side sends only whole files.
var errNoRange = errors.New("the answer begins at the first byte")
