package cpu

import (
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns n numbers behind which the process may not read: a kernel that
// reads or writes past the last ends the test.
func guarded[T uint16 | float32](t *testing.T, n int) []T {
	t.Helper()
	var zero T
	page := syscall.Getpagesize()
	size := (n*int(unsafe.Sizeof(zero)) + page) / page * page // at least one
	memory, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(memory) })
	if err := syscall.Mprotect(memory[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	end := unsafe.Pointer(unsafe.SliceData(memory[size:]))
	return unsafe.Slice((*T)(unsafe.Add(end, -n*int(unsafe.Sizeof(zero)))), n)
}
