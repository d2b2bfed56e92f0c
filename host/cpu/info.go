package cpu

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"skald/host/compute"
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

// machineMemory reads what Linux says, with the limit of a version 2 control group;
// elsewhere it knows nothing.
func machineMemory() compute.MemoryInfo {
	var m compute.MemoryInfo
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "MemTotal":
			m.Total = kib << 10
		case "MemAvailable":
			m.Free = kib << 10
		}
	}
	limit, ok := readBytes("/sys/fs/cgroup/memory.max")
	if ok && limit < m.Total {
		m.Total = limit
		if current, ok := readBytes("/sys/fs/cgroup/memory.current"); ok {
			m.Free = min(m.Free, max(0, limit-current))
		}
	}
	return m
}

// hasRoom tells whether private memory of some bytes leaves an eighth of the machine's
// free. Where nothing is known of its memory, there is none to spare.
func hasRoom(bytes int64) bool {
	m := machineMemory()
	return bytes <= m.Free-m.Total/8 && m.Total > 0
}

// readBytes reads a file that holds one number.
func readBytes(name string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
