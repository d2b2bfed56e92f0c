package cpu

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"skald/host/compute"
	"skald/host/machine"
)

// processorName is what the system calls the processor, or its architecture.
func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "model name" && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// machineMemory is what the machine or the container that this runs in says.
func machineMemory() compute.MemoryInfo {
	m := machine.ReadMemory(os.DirFS("/"))
	return compute.MemoryInfo{Total: m.Total(), Free: m.Available()}
}

// hasRoom tells whether private memory of some bytes leaves an eighth of the machine's
// free. Where nothing is known of its memory, there is none to spare.
func hasRoom(bytes int64) bool {
	m := machineMemory()
	return bytes <= m.Free-m.Total/8 && m.Total > 0
}

// WhyPacked says in words what Options.PackBytes comes to at the level of this machine.
func WhyPacked(bytes int64) string {
	l, err := chooseLevel("")
	if err != nil {
		return err.Error()
	}
	k := machineKernels(l)
	switch {
	case !k.panels.there():
		return fmt.Sprintf("nothing: the portable code of level %s reads matrices as they lie", l)
	case bytes < 0:
		return "nothing: panels are made inside each operation"
	case bytes > 0:
		return fmt.Sprintf("matrices whose copy is at most %d bytes", bytes)
	case k.packPairs != nil:
		return fmt.Sprintf("at level %s all matrices of bfloat16, as far as there is memory, for a few rows are multiplied several times as fast then; and small matrices of float32", l)
	}
	return fmt.Sprintf("at level %s matrices whose copy is at most %d bytes; larger ones are bound by memory, and a copy in float32 would take more of it", l, defaultPackBytes)
}
