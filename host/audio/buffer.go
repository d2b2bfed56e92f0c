package audio

import (
	"fmt"
	"io"
)

// Buffer is a file in memory. An [Encoder] that writes to it can complete its header.
// The zero value is an empty file.
type Buffer struct {
	data []byte
	at   int // where the next write goes
}

// Bytes is the content. It is valid until the next write.
func (b *Buffer) Bytes() []byte { return b.data }

// Write writes at the position, over what is there; it never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	n := copy(b.data[b.at:], p)
	b.data = append(b.data, p[n:]...)
	b.at += len(p)
	return len(p), nil
}

// Seek sets the position, which must lie in the content or at its end.
func (b *Buffer) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += int64(b.at)
	case io.SeekEnd:
		offset += int64(len(b.data))
	}
	if offset < 0 || offset > int64(len(b.data)) {
		return 0, fmt.Errorf("audio: seek to %d in a buffer of %d bytes", offset, len(b.data))
	}
	b.at = int(offset)
	return offset, nil
}
