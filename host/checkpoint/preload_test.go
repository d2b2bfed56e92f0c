package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// mapped returns a checkpoint that lies in files, and the mapping of one file of n bytes.
func mapped(t *testing.T, n int) (*Checkpoint, []byte, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(name, make([]byte, n), 0o600); err != nil {
		t.Fatal(err)
	}
	data, unmap, err := mapFile(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmap() })
	return &Checkpoint{dir: filepath.Dir(name)}, data, name
}

func TestPreload(t *testing.T) {
	const n = 3*preloadPiece + 12345
	c, data, _ := mapped(t, n)
	parts := [][]byte{data[100 : preloadPiece+777], nil, data[2*preloadPiece+1:]}
	want := int64(len(parts[0]) + len(parts[2]))
	for workers := range 4 {
		var told int64
		if err := c.Preload(context.Background(), parts, workers, func(n int64) { told += n }); err != nil || told != want {
			t.Errorf("%d workers: told of %d bytes of %d, error %v", workers, told, want, err)
		}
	}
	if err := c.Preload(context.Background(), nil, 2, nil); err != nil {
		t.Errorf("nothing to preload: %v", err)
	}
}

func TestPreloadStops(t *testing.T) {
	c, data, _ := mapped(t, 20*preloadPiece)
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	pieces := 0
	err := c.Preload(ctx, [][]byte{data}, 2, func(int64) {
		if pieces++; pieces == 3 {
			cancel(enough)
		}
	})
	if !errors.Is(err, enough) || pieces > 3+2 {
		t.Errorf("stopped after %d pieces of 20 with %v", pieces, err)
	}
}

func TestPreloadInMemory(t *testing.T) {
	c := &Checkpoint{fsys: fstest.MapFS{}}
	if err := c.Preload(context.Background(), [][]byte{{1, 2, 3}}, 2, func(int64) { t.Error("told of bytes that are there") }); err != nil {
		t.Error(err)
	}
}

func TestTouch(t *testing.T) {
	pages := make([]byte, 3*os.Getpagesize()+1)
	for _, i := range []int{0, 1, 2, 3} {
		pages[i*os.Getpagesize()] = 1
	}
	before := touched.Load()
	touch(pages)
	if got := touched.Load() - before; got != 4 {
		t.Errorf("%d of 4 pages were read", got)
	}
}
