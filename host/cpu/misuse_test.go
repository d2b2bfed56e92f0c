package cpu_test

import (
	"fmt"
	"strings"
	"testing"

	"skald/host/compute"
)

// TestWrongPlaces: positions, sequences and blocks come out of buffers, so a wrong one
// is a failure that Sync returns, and nothing is written.
func TestWrongPlaces(t *testing.T) {
	d := open(t, 1)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	ints := func(v ...int32) compute.Buffer {
		b, err := d.NewBuffer(compute.I32, len(v))
		if err != nil {
			t.Fatal(err)
		}
		q.UploadInts(b, v)
		return b
	}
	floats := func(n int) compute.Buffer {
		b, err := d.NewBuffer(compute.F32, n)
		if err != nil {
			t.Fatal(err)
		}
		q.Zero(b)
		return b
	}
	cache, err := d.NewKVCache(compute.KVConfig{Layers: 1, Heads: 1, HeadDim: 2, BlockSize: 4, Blocks: 3, DType: compute.F32})
	if err != nil {
		t.Fatal(err)
	}
	rope := compute.RopeTable{Cos: floats(6), Sin: floats(6), Dim: 2}
	cases := []struct {
		pos, seq int32
		blocks   []int32
		want     string // in the message; "" when all is well
	}{
		{0, 0, []int32{0, 1, 2, 0}, ""},
		{5, 1, []int32{0, 1, 2, 0}, ""},
		{-1, 0, []int32{0, 1, 2, 0}, "position -1"},
		{8, 0, []int32{0, 1, 2, 0}, "position 8"},
		{6, 0, []int32{0, 1, 2, 0}, "rope table has 6"},
		{0, -1, []int32{0, 1, 2, 0}, "sequence -1"},
		{4, 2, []int32{0, 1, 2, 0}, "sequence 2"},
		{0, 0, []int32{3, 1, 2, 0}, "block 3"},
		{5, 0, []int32{-1, 1, 2, 0}, "block -1"},
	}
	for _, c := range cases {
		at := compute.Rows{N: 1, Pos: ints(c.pos), Seq: ints(c.seq), Blocks: ints(c.blocks...), MaxBlocks: 2}
		q.AppendKV(compute.AppendKV{Cache: cache, Q: floats(2), K: floats(2), V: floats(2), QHeads: 1, Rope: rope}, at)
		check(t, "AppendKV", q.Sync(), c.want)
		if strings.Contains(c.want, "rope") {
			continue
		}
		q.CachedAttention(floats(2), floats(2), cache, 0, 1, 1, at)
		check(t, "CachedAttention", q.Sync(), c.want)
	}
	t.Logf("%d places", len(cases))
}

func check(t *testing.T, op string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", op, err)
	case want != "" && err == nil:
		t.Errorf("%s: no failure, want %q", op, want)
	case want != "" && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), op)):
		t.Errorf("%s: %v, want %q", op, err, want)
	}
}

// TestPanics: what only this device checks. Buffers that overlap, what a recording may
// not hold, and memory that was given back.
func TestPanics(t *testing.T) {
	d := open(t, 1)
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	const n = 12
	b, err := d.NewBuffer(compute.F32, n)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := d.NewBuffer(compute.I32, n)
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: []int{2, 2}, Data: make([]byte, 16)}, compute.UseLinear, compute.F32)
	if err != nil {
		t.Fatal(err)
	}
	record := func(f func(compute.Queue)) func() {
		return func() {
			r, err := q.Record(f)
			if err != nil {
				t.Fatal(err)
			}
			r.Run()
		}
	}
	freed, err := d.NewBuffer(compute.F32, n)
	if err != nil {
		t.Fatal(err)
	}
	freed.Free()
	lo, hi := b.Slice(0, 8), b.Slice(4, n)
	cases := []struct {
		want string
		f    func()
	}{
		{"Linear: Y overlaps x", func() { q.Linear(lo, 4, compute.Linear{Y: hi, W: w}) }},
		{"Linear: Y overlaps Residual", func() { q.Linear(b.Slice(0, 2), 1, compute.Linear{Y: b.Slice(4, 6), W: w, Residual: b.Slice(5, 7)}) }},
		{"SiLU: y overlaps", func() { q.SiLU(hi, lo) }},
		{"SplitChannels: y overlaps x", func() { q.SplitChannels(b, b, 3, 4, 2) }},
		{"EulerStep: x overlaps vc", func() { q.EulerStep(b, b, nil, 1, 1) }},
		{"Upload inside a recording", record(func(q compute.Queue) { q.Upload(b, []float32{1}) })},
		{"UploadInts inside a recording", record(func(q compute.Queue) { q.UploadInts(ids, []int32{1}) })},
		{"Download inside a recording", record(func(q compute.Queue) { q.Download(make([]float32, 1), b) })},
		{"DownloadInts inside a recording", record(func(q compute.Queue) { q.DownloadInts(make([]int32, 1), ids) })},
		{"Sync inside a recording", record(func(q compute.Queue) { q.Sync() })},
		{"Zero: dst is <nil>", func() { q.Zero(nil) }},
		{"Upload: dst has 0 numbers, want 1", func() { q.Upload(freed, []float32{1}) }},
		{"Free of a slice", func() { lo.Free() }},
		{"a second Free", func() { freed.Free() }},
		{"Slice(4, 13)", func() { b.Slice(4, 13) }},
	}
	for _, c := range cases {
		if got := panicOf(c.f); !strings.Contains(got, c.want) {
			t.Errorf("panic %q, want %q", got, c.want)
		}
	}
	if err := q.Sync(); err != nil { // also: a recording that panicked has ended
		t.Error(err)
	}
	t.Logf("%d misuses", len(cases))
}

func panicOf(f func()) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}
