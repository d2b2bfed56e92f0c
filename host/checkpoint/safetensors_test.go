package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// file puts a header's length before it and the data behind it.
func file(header, data string) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

func TestParseFile(t *testing.T) {
	for _, test := range []struct {
		name, header, data string
		want               []string // "name dtype shape offset data"
	}{
		{"no tensors", `{}`, "", nil},
		{"padded header", `{}      `, "", nil},
		{"only metadata", `{"__metadata__":{"a":"b"}}`, "", nil},
		{"scalar", `{"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, "abcd", []string{"x F32 [] 61 abcd"}},
		{"unaligned", `{"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`,
			"?abcd", []string{"a U8 [1] 114 ?", "b F32 [1] 115 abcd"}},
		{"no elements", `{"a":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]},"b":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"c":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[2,2]}}`,
			"xy", []string{"a F32 [0 9] 191 ", "b I8 [2] 191 xy", "c F32 [4611686018427387904 4 0] 193 "}},
		{"no elements, named last", `{"b":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`,
			"xy", []string{"a F32 [0] 114 ", "b I8 [2] 114 xy"}},
		{"order of members", `{"x":{"data_offsets":[0,2],"shape":[1],"dtype":"BF16"}}`, "ab", []string{"x BF16 [1] 63 ab"}},
		{"escaped name", `{"\u00e9\n":{"dtype":"I8","shape":[],"data_offsets":[0,1]}}`, "a", []string{"é\n I8 [] 67 a"}},
	} {
		f, err := ParseFile("f", file(test.header, test.data))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var got []string
		for _, name := range f.Names() {
			x, ok := f.Tensor(name)
			if !ok || x.File != "f" {
				t.Errorf("%s: tensor %q: found %v, file %q", test.name, name, ok, x.File)
			}
			got = append(got, fmt.Sprintf("%s %s %v %d %s", x.Name, x.DType, x.Shape, x.Offset, x.Data))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestDTypes(t *testing.T) {
	sizes := map[DType]int{
		F64: 8, I64: 8, U64: 8, F32: 4, I32: 4, U32: 4, F16: 2, BF16: 2, I16: 2, U16: 2,
		F8E4M3: 1, F8E5M2: 1, I8: 1, U8: 1, Bool: 1,
	}
	for dtype, size := range sizes {
		header := fmt.Sprintf(`{"x":{"dtype":%q,"shape":[3],"data_offsets":[0,%d]}}`, dtype, 3*size)
		f, err := ParseFile("f", file(header, strings.Repeat("x", 3*size)))
		if err != nil {
			t.Errorf("%s: %v", dtype, err)
			continue
		}
		if x, _ := f.Tensor("x"); x.Elements() != 3 || x.DType != dtype || len(x.Data) != 3*size {
			t.Errorf("%s: %d elements of %s in %d bytes", dtype, x.Elements(), x.DType, len(x.Data))
		}
	}
	t.Logf("%d types", len(sizes))
}

func TestParseFileRefuses(t *testing.T) {
	tensor := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"x":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	two := func(a, b string) string {
		return fmt.Sprintf(`{"a":{"dtype":"I8","shape":[2],"data_offsets":%s},"b":{"dtype":"I8","shape":[2],"data_offsets":%s}}`, a, b)
	}
	long := strings.Repeat("n", 1000)
	tests := []struct {
		name string
		data []byte
		want string // after "checkpoint: f: "
	}{
		{"empty file", nil, "byte 0: the file has 0 bytes"},
		{"short file", []byte("1234567"), "byte 0: the file has 7 bytes"},
		{"huge length", binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "byte 0: header length 18446744073709551615, expected at most"},
		{"length beyond the file", binary.LittleEndian.AppendUint64(nil, 99_999_999), "byte 0: header length 99999999, but only 0 bytes follow: the file is truncated"},
		{"length beyond the format", append(binary.LittleEndian.AppendUint64(nil, 100_000_001), "{}"...), "byte 0: header length 100000001, expected at most 100000000"},
		{"Git LFS pointer", []byte("version https://git-lfs.example/spec/v1\noid sha256:0\n"), "this is a Git LFS pointer"},
		{"empty header", file("", ""), "byte 8: header: the header is not a JSON object"},
		{"array", file("[]", ""), "byte 8: header: the header is not a JSON object"},
		{"space first", file(" {}", ""), "byte 8: header: the header is not a JSON object"},
		{"cut off", file(`{"x":{"dtype":`, ""), "byte 22: header: "},
		{"no JSON", file(`{x}`, ""), "byte 9: header: "},
		{"two objects", file(`{}{}`, ""), "byte 11: header: something follows"},
		{"text behind", file(`{} x`, ""), "byte 11: header: "},
		{"NUL padding", file("{}\x00", ""), "byte 10: header: "},
		{"not UTF-8", file("{\"\xff\":{}}", ""), "byte 10: header: "},
		{"lone surrogate", file(`{"\ud800":{}}`, ""), "byte 10: header: "},
		{"duplicate tensor", file(`{"x":{"dtype":"I8","shape":[],"data_offsets":[0,1]},"x":{}}`, "a"), `byte 60: header: at "/x": duplicate`},
		{"duplicate member", file(`{"x":{"dtype":"I8","dtype":"I8"}}`, ""), `byte 27: header: at "/x/dtype": duplicate`},
		{"deep nesting", file(`{"x":`+strings.Repeat("[", 100_000), ""), `byte 12: header: tensor "x" is not an object`},
		{"deep metadata", file(`{"__metadata__":{"x":`+strings.Repeat("[", 100_000), ""), `byte 30: header: [, expected a string`},
		{"metadata no object", file(`{"__metadata__":3}`, ""), "byte 23: header: __metadata__ is not an object"},
		{"metadata no text", file(`{"__metadata__":{"a":1}}`, ""), "byte 30: header: 1, expected a string"},
		{"tensor null", file(`{"x":null}`, ""), `byte 12: header: tensor "x" is not an object`},
		{"no dtype", file(`{"x":{"shape":[],"data_offsets":[0,0]}}`, ""), `header: tensor "x" lacks one of`},
		{"no shape", file(`{"x":{"dtype":"I8","data_offsets":[0,1]}}`, "a"), `header: tensor "x" lacks one of`},
		{"no offsets", file(`{"x":{"dtype":"I8","shape":[]}}`, "a"), `header: tensor "x" lacks one of`},
		{"unknown member", file(`{"x":{"stride":[]}}`, ""), `byte 22: header: tensor "x": unknown member "stride"`},
		{"unknown dtype", file(tensor(`"F4"`, "[2]", "[0,1]"), "a"), `byte 26: header: tensor "x": dtype "F4" is not supported`},
		{"dtype a number", file(tensor(`7`, "[2]", "[0,1]"), "a"), `header: 7, expected a string`},
		{"shape a number", file(tensor(`"I8"`, "2", "[0,2]"), "ab"), `header: tensor "x": shape is not an array`},
		{"negative dimension", file(tensor(`"I8"`, "[-1]", "[0,1]"), "a"), `tensor "x": shape: -1, expected a non-negative integer`},
		{"fraction", file(tensor(`"I8"`, "[1.0]", "[0,1]"), "a"), `tensor "x": shape: 1.0, expected a non-negative integer`},
		{"exponent", file(tensor(`"I8"`, "[1e0]", "[0,1]"), "a"), `tensor "x": shape: 1e0, expected`},
		{"text as a dimension", file(tensor(`"I8"`, `["1"]`, "[0,1]"), "a"), `tensor "x": shape: 1, expected a non-negative integer`},
		{"nested shape", file(tensor(`"I8"`, `[[1]]`, "[0,1]"), "a"), `tensor "x": shape: [, expected`},
		{"large dimension", file(tensor(`"I8"`, "[9223372036854775808]", "[0,1]"), "a"), `tensor "x": dimension 9223372036854775808 is too large`},
		{"overflowing dimension", file(tensor(`"I8"`, "[18446744073709551616]", "[0,1]"), "a"), `18446744073709551616, expected a non-negative`},
		{"overflowing product", file(tensor(`"I8"`, "[4294967296,4294967296]", "[0,0]"), ""), `tensor "x": I8 [4294967296 4294967296] does not fill its 0 bytes`},
		{"overflowing bytes", file(tensor(`"F32"`, "[4611686018427387905]", "[0,4]"), "abcd"), `does not fill its 4 bytes`},
		{"many dimensions", file(tensor(`"I8"`, "["+strings.Repeat("1,", 64)+"1]", "[0,1]"), "a"), "more than 64 dimensions"},
		{"shape too small", file(tensor(`"I16"`, "[1]", "[0,1]"), "a"), `byte 12: tensor "x": I16 [1] does not fill its 1 bytes`},
		{"one offset", file(tensor(`"I8"`, "[1]", "[0]"), "a"), `header: tensor "x": data_offsets: ], expected`},
		{"three offsets", file(tensor(`"I8"`, "[1]", "[0,1,2]"), "a"), `header: tensor "x": data_offsets is not an array of two numbers`},
		{"backwards", file(tensor(`"I8"`, "[1]", "[1,0]"), "a"), `data_offsets [1,0] run backwards`},
		{"truncated", file(tensor(`"I8"`, "[2]", "[0,2]"), "a"), `byte 12: tensor "x": data_offsets [0,2] end behind the file, which has 1 bytes`},
		{"far away", file(tensor(`"I8"`, "[1]", "[18446744073709551614,18446744073709551615]"), "a"), `end behind the file`},
		{"overlap", file(two("[0,2]", "[1,3]"), "abc"), `tensor "b": data_offsets [1,3] overlap`},
		{"same place", file(two("[0,2]", "[0,2]"), "ab"), `tensor "b": data_offsets [0,2] overlap`},
		{"hole", file(two("[0,2]", "[3,5]"), "abcde"), `tensor "b": data_offsets [3,5] leave a hole after 2`},
		{"hole first", file(tensor(`"I8"`, "[1]", "[1,2]"), "ab"), `data_offsets [1,2] leave a hole after 0`},
		{"trailing bytes", file(tensor(`"I8"`, "[1]", "[0,1]"), "abc"), `byte 62: 2 bytes follow the last tensor`},
		{"trailing bytes alone", file(`{}`, "a"), `byte 10: 1 bytes follow`},
		{"long name", file(`{"`+long+`":3}`, ""), `tensor "nnn`},
	}
	for _, test := range tests {
		f, err := ParseFile("f", test.data)
		if err == nil {
			t.Errorf("%s: accepted, %d tensors", test.name, len(f.Names()))
			continue
		}
		message, ok := strings.CutPrefix(err.Error(), "checkpoint: f: ")
		if !ok || !strings.Contains(message, test.want) {
			t.Errorf("%s:\n  got  %v\n  want %s", test.name, err, test.want)
		}
		if len(message) > 500 {
			t.Errorf("%s: a message of %d bytes", test.name, len(message))
		}
	}
	t.Logf("%d files refused", len(tests))
}

// TestTruncated cuts a file at every byte: each part must be refused.
func TestTruncated(t *testing.T) {
	var whole bytes.Buffer
	if err := writeAll(&whole, sampleTensors(sampleConfig(), conditionEncoder), map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseFile("f", whole.Bytes()); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if _, err := ParseFile("f", whole.Bytes()[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, whole.Len())
		}
	}
	t.Logf("%d parts refused", whole.Len())
}

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "good", file(`{"__metadata__":{"k":"v"},"x":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, "a"))
	f, err := OpenFile(filepath.Join(dir, "good"))
	if err != nil {
		t.Fatal(err)
	}
	x, ok := f.Tensor("x")
	if !ok || string(x.Data) != "a" {
		t.Errorf("x: %v %q", ok, x.Data)
	}
	if _, ok := f.Tensor("y"); ok {
		t.Error("a tensor that is not there was found")
	}
	metadata := f.Metadata()
	metadata["k"] = "changed"
	if f.Metadata()["k"] != "v" {
		t.Error("the metadata are not a copy")
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, ok := f.Tensor("x"); ok {
		t.Error("a closed file gives a tensor")
	}

	write(t, dir, "empty", nil)
	write(t, dir, "short", []byte{1})
	for _, name := range []string{"empty", "short", ".", "absent"} {
		path := filepath.Join(dir, name)
		if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenFile(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v is not fs.ErrNotExist", err)
	}
}

// TestLargeFile reads a tensor that lies behind 5 GiB, in a file that is a hole
// for the most part.
func TestLargeFile(t *testing.T) {
	const size = 5 << 30
	path := filepath.Join(t.TempDir(), "large.safetensors")
	tensors := []Tensor{{Name: "hole", DType: I8, Shape: []int{size}}, {Name: "end", DType: I8, Shape: []int{3}}}
	header, err := encodeHeader(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	end := int64(len(header)) + size
	if _, err := f.Write(header); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("end"), end); err != nil {
		t.Skipf("NOT EXAMINED: 1 file with offsets above 4 GiB: %v", err)
	}
	opened, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if x, _ := opened.Tensor("end"); x.Offset != end || string(x.Data) != "end" {
		t.Errorf("offset %d, want %d, data %q", x.Offset, end, x.Data)
	}
}

func FuzzParseFile(f *testing.F) {
	var whole bytes.Buffer
	if err := writeAll(&whole, sampleTensors(sampleConfig(), conditionEncoder), map[string]string{"format": "pt"}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add(file(`{}`, ""))
	f.Add(file(`{"a":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]},"b":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}`, "xy"))
	f.Add(file(`{"x":{"dtype":"BF16","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseFile("f", data)
		if err != nil {
			return
		}
		// What is accepted covers the file: writing it again gives the same tensors.
		var again bytes.Buffer
		if err := writeAll(&again, file.tensors, file.metadata); err != nil {
			t.Fatalf("accepted, but cannot be written: %v", err)
		}
		second, err := ParseFile("f", again.Bytes())
		if err != nil {
			t.Fatalf("written, but refused: %v", err)
		}
		if !slices.Equal(file.Names(), second.Names()) {
			t.Fatalf("names %q became %q", file.Names(), second.Names())
		}
		for i, x := range file.tensors {
			y := second.tensors[i]
			if x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) || !bytes.Equal(x.Data, y.Data) {
				t.Fatalf("%s: %s %v %q became %s %v %q", x.Name, x.DType, x.Shape, x.Data, y.DType, y.Shape, y.Data)
			}
			if got := data[x.Offset : x.Offset+int64(len(x.Data))]; !bytes.Equal(got, x.Data) {
				t.Fatalf("%s: other bytes at offset %d", x.Name, x.Offset)
			}
			if x.Elements()*x.DType.Size() != len(x.Data) {
				t.Fatalf("%s: %d elements in %d bytes", x.Name, x.Elements(), len(x.Data))
			}
		}
	})
}
