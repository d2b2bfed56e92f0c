package checkpoint

import (
	"context"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestPreloadMapsPages: afterwards the pages are in memory, and not before.
func TestPreloadMapsPages(t *testing.T) {
	const n = 2 * preloadPiece
	c, data, name := mapped(t, n)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if cold := resident(t, data); cold == n/os.Getpagesize() {
		t.Log("this file system keeps its files in memory: only that nothing is lost can be seen")
	}
	if err := c.Preload(context.Background(), [][]byte{data}, 2, nil); err != nil {
		t.Fatal(err)
	}
	if got := resident(t, data); got != n/os.Getpagesize() {
		t.Errorf("%d of %d pages are in memory", got, n/os.Getpagesize())
	}
}

// TestPreloadCutShort: a file that lost its end is an error, not the end of the program.
func TestPreloadCutShort(t *testing.T) {
	c, data, name := mapped(t, 2*preloadPiece)
	if err := unix.Madvise(data[:os.Getpagesize()], unix.MADV_POPULATE_READ); err != nil {
		t.Skipf("NOT EXAMINED: 1 case, a file cut short while it is read: this system has no MADV_POPULATE_READ (%v)", err)
	}
	if err := os.Truncate(name, preloadPiece); err != nil {
		t.Fatal(err)
	}
	if err := c.Preload(context.Background(), [][]byte{data}, 2, nil); err == nil {
		t.Error("no error")
	}
}

func resident(t *testing.T, data []byte) (pages int) {
	t.Helper()
	vec := make([]byte, (len(data)+os.Getpagesize()-1)/os.Getpagesize())
	if err := mincore(data, vec); err != nil {
		t.Fatal(err)
	}
	for _, v := range vec {
		pages += int(v & 1)
	}
	return pages
}

func mincore(data, vec []byte) error {
	_, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&vec[0])))
	if e != 0 {
		return e
	}
	return nil
}
