package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestWritten: the files in the package are those that this program writes.
func TestWritten(t *testing.T) {
	n := 0
	for _, f := range files() {
		for name, want := range f.render() {
			got, err := os.ReadFile(filepath.Join("..", "..", name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what go generate writes", name)
			}
			n++
		}
	}
	t.Logf("%d files", n)
}
