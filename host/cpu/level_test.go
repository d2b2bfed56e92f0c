package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// forLevels runs f for every level above "go" that the machine has.
func forLevels(t *testing.T, f func(t *testing.T, k kernels)) {
	available, _ := machineLevels()
	for _, l := range knownLevels() {
		if l == levelGo {
			continue
		}
		t.Run(string(l), func(t *testing.T) {
			if !slices.Contains(available, l) {
				t.Skipf("NOT EXAMINED: %s at 1 of %d levels: this machine or build lacks %s", t.Name(), len(knownLevels())-1, l)
			}
			f(t, machineKernels(l))
		})
	}
	t.Logf("%d levels of %d", len(available)-1, len(knownLevels())-1)
}

func TestChooseLevel(t *testing.T) {
	available, fastest := machineLevels()
	t.Setenv(levelVariable, "")
	if l, err := chooseLevel(""); err != nil || l != fastest {
		t.Errorf("by default %v, %v, want %v", l, err, fastest)
	}
	for _, l := range knownLevels() {
		t.Setenv(levelVariable, string(l))
		got, err := chooseLevel("")
		if slices.Contains(available, l) != (err == nil) || err == nil && got != l {
			t.Errorf("forced %v: %v, %v", l, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), levelVariable) {
			t.Errorf("the error does not name the variable: %v", err)
		}
	}
	t.Setenv(levelVariable, "sse")
	if _, err := chooseLevel(""); err == nil || !strings.Contains(err.Error(), `"sse"`) {
		t.Errorf("an unknown level: %v", err)
	}
	if l, err := chooseLevel("go"); err != nil || l != levelGo {
		t.Errorf("an option must win over the environment: %v, %v", l, err)
	}
	d, err := New(Options{Threads: 1, Level: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if detail := d.Info().Detail; !strings.Contains(detail, "level go") {
		t.Errorf("the device does not tell its level: %q", detail)
	}
	t.Logf("%d levels, of which the machine has %v", len(knownLevels()), available)
}

func TestWiden(t *testing.T) {
	forLevels(t, func(t *testing.T, k kernels) {
		for _, n := range []int{0, 1, 31, 32, 33, 64, 1000} {
			src, got, want := make([]uint16, n), make([]float32, n+1), make([]float32, n+1)
			for i := range src {
				src[i] = uint16(rand.Uint32())
			}
			k.widen(got, src)
			widen(want, src)
			if a, b := fmt.Sprintf("%x", got), fmt.Sprintf("%x", want); a != b {
				t.Errorf("%d numbers: %s, want %s", n, a, b)
			}
		}
	})
}
