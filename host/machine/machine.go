// Package machine finds out what this computer offers to a process: processor and
// its instruction sets, cores and memory with the limits of a container, free disk.
// Facts only; what follows from them is the caller's business.
package machine

import (
	"bufio"
	"bytes"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what Read found. Zero and "" mean unknown, or no limit.
type Machine struct {
	CPU        string   `json:"cpu"`          // the processor's own name
	Features   []string `json:"cpu_features"` // instruction sets that matter to us, best last
	Cores      int      `json:"cores"`        // logical processors this process may use
	GOMAXPROCS int      `json:"gomaxprocs"`   // threads that run Go code at once

	CgroupCPUs float64 `json:"cgroup_cpus,omitempty"` // processor time a container may use, in cores
	Memory

	NVIDIA bool `json:"nvidia_driver"` // a driver of NVIDIA GPUs is loaded
}

// Memory is how much there is and what is left of it. What only caches a file counts as
// available: it makes room when somebody needs it.
type Memory struct {
	MemoryTotal  int64 `json:"memory_bytes"`                            // of the machine
	MemoryFree   int64 `json:"memory_available_bytes"`                  // of the machine
	CgroupMemory int64 `json:"cgroup_memory_bytes,omitempty"`           // a container's limit
	CgroupFree   int64 `json:"cgroup_memory_available_bytes,omitempty"` // of it; means something only with a limit
}

// Total is what this process could have if it were alone; 0 if that is not known.
func (m Memory) Total() int64 { return smaller(m.MemoryTotal, m.CgroupMemory) }

// Available is what this process can have now: what the machine or the container has
// left, whichever is less. It is not known where Total is 0.
func (m Memory) Available() int64 {
	if m.CgroupMemory > 0 && (m.MemoryTotal == 0 || m.CgroupFree < m.MemoryFree) {
		return m.CgroupFree
	}
	return m.MemoryFree
}

// Read looks around. root is the root of the file system (os.DirFS("/")); what it
// cannot read there stays unknown.
func Read(root fs.FS) Machine {
	m := Machine{
		Features:   features(),
		Cores:      runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	m.CPU = cpuName(root)
	m.CgroupCPUs = cgroupCPUs(root)
	m.Memory = ReadMemory(root)
	_, err := fs.Stat(root, "proc/driver/nvidia/version")
	m.NVIDIA = err == nil
	return m
}

// cpuName reads the first processor's name; on arm64 Linux gives numbers only, and a
// device tree may name the board.
func cpuName(root fs.FS) string {
	if name := field(root, "proc/cpuinfo", "model name"); name != "" {
		return name
	}
	board, err := fs.ReadFile(root, "proc/device-tree/model")
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(board), "\x00\n")
}

// ReadMemory looks at the memory only.
func ReadMemory(root fs.FS) Memory {
	m := Memory{
		MemoryTotal: kilobytes(field(root, "proc/meminfo", "MemTotal")),
		MemoryFree:  kilobytes(field(root, "proc/meminfo", "MemAvailable")),
	}
	m.CgroupMemory, m.CgroupFree = cgroupMemory(root)
	if m.CgroupMemory >= m.MemoryTotal && m.MemoryTotal > 0 {
		m.CgroupMemory, m.CgroupFree = 0, 0 // version 1 writes a huge number for "no limit"
	}
	return m
}

func kilobytes(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// field returns the value of the first line "key : value" of a file below /proc.
func field(root fs.FS, file, key string) string {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		k, v, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
