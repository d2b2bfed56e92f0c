package cpu

import (
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
