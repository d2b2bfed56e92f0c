package engine

import (
	"log/slog"
	"strings"
	"testing"

	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/cpu"
	"skald/host/music3"
	"skald/host/nano"
)

// TestPlanMemory: the KV cache takes what is left, between one song and all.
func TestPlanMemory(t *testing.T) {
	ck, err := checkpoint.OpenFS(nano.FS(), "nano")
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	plan := func(songs int, have compute.MemoryInfo) Memory {
		t.Helper()
		m, err := planMemory(dev, ck, ck.Config, music3.Mixed, songs, have)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	one := plan(1, compute.MemoryInfo{})
	all := plan(4, compute.MemoryInfo{})
	if all.Positions != 4*one.Positions || all.Need.KVCache < 4*one.Need.KVCache*99/100 || !all.Fits() {
		t.Errorf("memory unknown: %d positions for a song, %d for four", one.Positions, all.Positions)
	}
	const none = 1 // byte free
	minute := plan(4, compute.MemoryInfo{Total: 1 << 40, Free: none})
	if minute.Fits() || minute.Seconds != 60 || minute.Positions >= one.Positions {
		t.Errorf("no memory: fits %v, %d positions, %d s", minute.Fits(), minute.Positions, minute.Seconds)
	}
	whole := plan(4, compute.MemoryInfo{Total: 1 << 40, Free: all.Need.Total() - 3*one.Need.KVCache + 1<<20})
	if !whole.Fits() || whole.Seconds != one.Seconds || one.Seconds < 350 {
		t.Errorf("one longest song fits: %v, %d s, alone %d s", whole.Fits(), whole.Seconds, one.Seconds)
	}
	least, longest := whole.Need.Total(), one.Need.KVCache
	if all.Need.Songs != 4*one.Need.Songs || all.Need.InPlace != one.Need.InPlace {
		t.Errorf("four songs %+v, one %+v", all.Need, one.Need)
	}
	before := 60
	for _, part := range []int64{0, 10, 50, 90} { // per cent of the way from a minute to the longest song
		free := minute.Need.Total() + (least-minute.Need.Total())*part/100
		m := plan(4, compute.MemoryInfo{Total: 1 << 40, Free: free})
		if !m.Fits() || m.Seconds < before || part > 0 && m.Seconds <= 60 || m.Seconds > one.Seconds {
			t.Errorf("%d per cent of the memory between: fits %v, songs of %d s, with less of %d s", part, m.Fits(), m.Seconds, before)
		}
		// What is left is less than a fiftieth of the cache of the longest song, twice over.
		if left := free - m.Need.Total(); part > 0 && left > (longest+one.Need.Songs)/10 {
			t.Errorf("%d per cent of the memory between: %d bytes are left, songs have %d s", part, left, m.Seconds)
		}
		before = m.Seconds
	}
	if m := plan(4, compute.MemoryInfo{Total: 1 << 40, Free: minute.Need.Total() - 1}); m.Fits() {
		t.Error("a byte too little fits")
	}
	some := compute.MemoryInfo{Total: 1 << 40, Free: least + 2*longest}
	if m := plan(4, some); !m.Fits() || m.Positions < 2*one.Positions*99/100 || m.Positions > 2*one.Positions*101/100 {
		t.Errorf("two songs' memory left: fits %v, %d positions, want the room of two: %d", m.Fits(), m.Positions, 2*one.Positions)
	}
	if m := plan(4, compute.MemoryInfo{Total: 1 << 40, Free: 1 << 40}); m.Positions != all.Positions {
		t.Errorf("plenty of memory: %d positions, want %d", m.Positions, all.Positions)
	}
}

// TestRefuse: a model for which there is no room is refused with the numbers and with what
// fits, if anything does.
func TestRefuse(t *testing.T) {
	ck, err := checkpoint.OpenFS(nano.FS(), "nano")
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	e := &Engine{ck: ck, songs: 4, log: slog.New(slog.DiscardHandler)}
	m := Memory{
		Need: music3.Need{InPlace: 5e12}, Have: compute.MemoryInfo{Total: 4e9, Free: 3e9}, Precision: music3.FP32, Songs: 4,
	}
	err = e.refuse(Options{}, m)
	for _, want := range []string{"5000.00 GB", "fp32", "4 songs", "3.00 GB of 4.00 GB", "what fits", "precision mixed (", "1 song"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	e.manifest.AcousticPrecision = "fp32"
	if err := e.refuse(Options{}, m); strings.Contains(err.Error(), "bf16") {
		t.Errorf("a precision below the checkpoint's floor is proposed: %v", err)
	}
	big := ck.Config
	big.LanguageModel.VocabSize, big.LanguageModel.IntermediateSize = 1<<40, 1<<40
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	src := music3.Shapes(big, func(string) checkpoint.DType { return "BF16" })
	huge, err := planMemory(dev, src, big, music3.Mixed, 4, compute.MemoryInfo{Total: 4e9, Free: 3e9})
	if err != nil || huge.Fits() {
		t.Errorf("weights of %d bytes fit in 4 GB: %v", huge.Need.InPlace, err)
	}
}
