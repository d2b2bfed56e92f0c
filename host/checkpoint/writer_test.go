package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestWriterBytes compares with a file written out by hand.
func TestWriterBytes(t *testing.T) {
	tensors := []Tensor{
		{Name: "b", DType: F32, Shape: []int{1, 2}, Data: []byte("12345678")},
		{Name: "é\"", DType: BF16, Shape: []int{0}},
		{Name: "a", DType: Bool, Data: []byte("x")},
	}
	header := `{"__metadata__":{"k":"v","z":"\n"},` +
		`"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},` +
		`"é\"":{"dtype":"BF16","shape":[0],"data_offsets":[8,8]},` +
		`"a":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	var got bytes.Buffer
	if err := writeAll(&got, tensors, map[string]string{"z": "\n", "k": "v"}); err != nil {
		t.Fatal(err)
	}
	if want := file(header, "12345678x"); !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", got.Bytes(), want)
	}
}

// TestWriterAlignment declares names of every length modulo eight.
func TestWriterAlignment(t *testing.T) {
	for n := 1; n <= 8; n++ {
		text, err := encodeHeader([]Tensor{{Name: strings.Repeat("n", n), DType: I8}}, nil)
		if err != nil || len(text)%8 != 0 {
			t.Errorf("name of %d: the numbers begin at %d, %v", n, len(text), err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	want := sampleTensors(sampleConfig(), vocoder)
	for range 2 { // the second time over the first
		if err := WriteFile(path, want, map[string]string{"format": "pt"}); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Names()) != len(want) || !reflect.DeepEqual(f.Metadata(), map[string]string{"format": "pt"}) {
			t.Errorf("%d tensors, metadata %v", len(f.Names()), f.Metadata())
		}
		for _, w := range want {
			got, ok := f.Tensor(w.Name)
			if !ok || got.DType != w.DType || !reflect.DeepEqual(got.Shape, w.Shape) || !bytes.Equal(got.Data, w.Data) {
				t.Errorf("%s: %v %s %v", w.Name, ok, got.DType, got.Shape)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}

	// A failure leaves the old file and nothing else.
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := []Tensor{want[0], {Name: "short", DType: F32, Shape: []int{2}, Data: []byte("1234")}}
	if err := WriteFile(path, bad, nil); err == nil || !strings.Contains(err.Error(), `tensor "short" lacks 4 bytes`) {
		t.Error(err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file changed: %d bytes, %v", len(after), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left over: %v", entries)
	}
	if err := WriteFile(filepath.Join(path, "below"), want, nil); err == nil {
		t.Error("wrote below a file")
	}
	t.Logf("%d tensors", len(want))
}

func TestWriterDeclarations(t *testing.T) {
	for _, test := range []struct {
		tensors  []Tensor
		metadata map[string]string
		want     string
	}{
		{[]Tensor{{Name: "x", DType: I8}, {Name: "x", DType: I8}}, nil, `tensor "x" is declared twice`},
		{[]Tensor{{Name: "__metadata__", DType: I8}}, nil, "the name is reserved"},
		{[]Tensor{{Name: "x", DType: "F4"}}, nil, `dtype "F4" is not supported`},
		{[]Tensor{{Name: "x", DType: I8, Shape: []int{-1}}}, nil, "shape [-1] is negative"},
		{[]Tensor{{Name: "x", DType: I8, Shape: []int{0, -1}}}, nil, "shape [0 -1] is negative"},
		{[]Tensor{{Name: "x", DType: F32, Shape: []int{math.MaxInt / 2}}}, nil, "is too large"},
		{[]Tensor{{Name: "x", DType: I8, Shape: make([]int, 65)}}, nil, "has 65 dimensions, expected at most 64"},
		{[]Tensor{{Name: "x", DType: I8, Shape: []int{math.MaxInt}}, {Name: "y", DType: I8, Shape: []int{1}}}, nil, `tensor "y": the file would be too large`},
		{[]Tensor{{Name: "\xff", DType: I8}}, nil, "invalid UTF-8"},
		{nil, map[string]string{"\xff": ""}, "invalid UTF-8"},
		{nil, map[string]string{"k": "\xff"}, "invalid UTF-8"},
	} {
		var out bytes.Buffer
		_, err := NewWriter(&out, test.tensors, test.metadata)
		if err == nil || !strings.Contains(err.Error(), test.want) || out.Len() != 0 {
			t.Errorf("%v: %v and %d bytes, want %s", test.want, err, out.Len(), test.want)
		}
	}
}

func TestWriterOrder(t *testing.T) {
	tensors := []Tensor{{Name: "a", DType: I16, Shape: []int{2}}, {Name: "b", DType: I8, Shape: []int{1}}}
	var out bytes.Buffer
	w, err := NewWriter(&out, tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(err error, want string) {
		t.Helper()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	put := func(s string) error { _, err := w.Write([]byte(s)); return err }

	expect(put("1"), "Write before Next")
	expect(w.Close(), `2 tensors are not written, first "a"`)
	expect(w.Next("b"), `tensor "b", expected "a"`)
	expect(w.Next("a"), "")
	expect(put("123"), "")
	expect(put("45"), `tensor "a": 1 bytes too many`)
	expect(w.Next("b"), `tensor "a" lacks 1 bytes`)
	expect(w.Close(), `tensor "a" lacks 1 bytes`)
	expect(put("4"), "")
	expect(w.Close(), `1 tensors are not written, first "b"`)
	expect(w.Next("b"), "")
	expect(put("5"), "")
	expect(w.Next("c"), `tensor "c" was not declared: all 2 tensors are written`)
	expect(w.Close(), "")
	size := binary.LittleEndian.Uint64(out.Bytes())
	if got := out.String()[lengthBytes+size:]; got != "12345" {
		t.Errorf("data %q", got)
	}

	failing := &failingWriter{room: 100}
	if _, err := NewWriter(failing, tensors, nil); !errors.Is(err, errFull) {
		t.Errorf("a failing writer: %v", err)
	}
}

var errFull = errors.New("full")

// failingWriter takes some bytes and then fails.
type failingWriter struct{ room int }

func (w *failingWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}
