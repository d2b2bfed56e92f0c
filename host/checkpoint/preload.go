package checkpoint

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"
)

// preloadPiece is how many bytes are asked for at once: enough to keep a disk busy, and
// little enough to stop soon.
const preloadPiece = 8 << 20

// Mapped tells whether the weights lie in files that are mapped.
func (c *Checkpoint) Mapped() bool { return c.dir != "" }

// Preload brings mapped weights into memory before they are needed: parts of the data of
// this checkpoint's tensors, in order, by several workers. progress, which may be nil, is
// told of the bytes of each piece by one goroutine at a time. A checkpoint that does not
// lie in files is there already.
//
// Without it, weights come page by page when they are first read, in the order of the
// computation, which is several times slower than a disk can be.
func (c *Checkpoint) Preload(ctx context.Context, parts [][]byte, workers int, progress func(bytes int64)) error {
	if !c.Mapped() {
		return nil
	}
	var pieces [][]byte
	for _, part := range parts {
		for len(part) > 0 {
			n := min(len(part), preloadPiece)
			pieces = append(pieces, part[:n:n])
			part = part[n:]
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next atomic.Int64
		all  sync.WaitGroup
		mu   sync.Mutex
	)
	workers = max(1, min(workers, len(pieces)))
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(pieces) {
					return
				}
				if ahead := i + workers; ahead < len(pieces) {
					readAhead(wholePages(pieces[ahead]))
				}
				if err := populate(wholePages(pieces[i])); err != nil {
					cancel(err)
					return
				}
				if progress != nil {
					mu.Lock()
					progress(int64(len(pieces[i])))
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// wholePages extends data of a mapping down to the beginning of its first page: mappings
// begin with a page.
func wholePages(data []byte) []byte {
	at := unsafe.Pointer(unsafe.SliceData(data))
	before := uintptr(at) % uintptr(os.Getpagesize())
	return unsafe.Slice((*byte)(unsafe.Add(at, -int(before))), len(data)+int(before))
}

// touched keeps the compiler from leaving the reads of touch out.
var touched atomic.Uint32

// touch reads a byte of every page.
func touch(pages []byte) {
	var sum byte
	for i := 0; i < len(pages); i += os.Getpagesize() {
		sum += pages[i]
	}
	touched.Add(uint32(sum))
}
