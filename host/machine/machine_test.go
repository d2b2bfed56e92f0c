package machine

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// files makes a file system of small text files.
func files(texts map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range texts {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

const meminfo = "MemTotal:       24683652 kB\nMemFree:        22953776 kB\nMemAvailable:   24088564 kB\n"

func TestRead(t *testing.T) {
	m := Read(files(map[string]string{
		"proc/cpuinfo": "processor\t: 0\nvendor_id\t: X\nmodel name\t: Some Processor: 3 GHz\nprocessor\t: 1\nmodel name\t: Other\n",
		"proc/meminfo": meminfo,
	}))
	if m.CPU != "Some Processor: 3 GHz" {
		t.Errorf("CPU %q", m.CPU)
	}
	if m.MemoryTotal != 24683652<<10 || m.MemoryFree != 24088564<<10 {
		t.Errorf("memory %d, available %d", m.MemoryTotal, m.MemoryFree)
	}
	if m.Available() != m.MemoryFree || m.Total() != m.MemoryTotal {
		t.Errorf("%d of %d available without a container", m.Available(), m.Total())
	}
	if m.Cores < 1 || m.GOMAXPROCS < 1 || m.NVIDIA || m.Features == nil {
		t.Errorf("got %+v", m)
	}
}

func TestReadNothing(t *testing.T) {
	m := Read(files(nil))
	if m.CPU != "" || m.MemoryTotal != 0 || m.Available() != 0 || m.Total() != 0 || m.CgroupCPUs != 0 {
		t.Errorf("an empty file system gave %+v", m)
	}
}

func TestBoard(t *testing.T) {
	m := Read(files(map[string]string{
		"proc/cpuinfo":               "processor\t: 0\nCPU implementer\t: 0x41\n",
		"proc/device-tree/model":     "NVIDIA Jetson AGX Thor\x00",
		"proc/driver/nvidia/version": "NVRM version",
	}))
	if m.CPU != "NVIDIA Jetson AGX Thor" || !m.NVIDIA {
		t.Errorf("got %+v", m)
	}
}

func TestCgroupLimits(t *testing.T) {
	tests := []struct {
		name   string
		files  map[string]string
		cpus   float64
		memory int64
		free   int64
	}{
		{"version 2, a parent limits more", map[string]string{
			"proc/self/cgroup":               "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max":      "400000 100000\n",
			"sys/fs/cgroup/a/cpu.max":        "150000 100000\n",
			"sys/fs/cgroup/a/b/memory.max":   "max\n",
			"sys/fs/cgroup/a/memory.max":     "1073741824\n",
			"sys/fs/cgroup/memory.max":       "2147483648\n",
			"sys/fs/cgroup/cgroup.procs":     "1\n",
			"sys/fs/cgroup/a/b/cgroup.procs": "1\n",
			"sys/fs/cgroup/a/memory.current": "805306368\n",
			"sys/fs/cgroup/a/memory.stat":    "anon 1\nactive_file 4096\ninactive_file 8192\n",
			"sys/fs/cgroup/memory.current":   "2147483647\n",
			"sys/fs/cgroup/memory.stat":      "inactive_file 1048576\n",
		}, 1.5, 1 << 30, 1<<20 + 1},
		{"version 2, no limit", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/cpu.max":    "max 100000\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 0, 0, 0},
		{"version 1", map[string]string{
			"proc/self/cgroup": "4:memory:/x\n2:cpu,cpuacct:/\n0::/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "4294967296\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":           "50000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":          "100000\n",
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/x/memory.stat":           "active_file 5\ntotal_active_file 4096\n",
		}, 0.5, 4 << 30, 3<<30 + 4096},
		{"version 1, no limit", map[string]string{
			"proc/self/cgroup": "4:memory:/\n2:cpu:/\n",
			"proc/meminfo":     meminfo,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
		}, 0, 0, 0},
		{"nonsense", map[string]string{
			"proc/self/cgroup":         "what\n0::/../../etc\n",
			"sys/fs/cgroup/cpu.max":    "lots\n",
			"sys/fs/cgroup/memory.max": "1e9\n",
		}, 0, 0, 0},
	}
	for _, test := range tests {
		m := Read(files(test.files))
		if m.CgroupCPUs != test.cpus || m.CgroupMemory != test.memory || m.CgroupFree != test.free {
			t.Errorf("%s: got %v cores, %d bytes, %d available; want %v, %d and %d",
				test.name, m.CgroupCPUs, m.CgroupMemory, m.CgroupFree, test.cpus, test.memory, test.free)
		}
		if test.memory > 0 && m.Available() != test.free {
			t.Errorf("%s: %d bytes available, want the container's %d", test.name, m.Available(), test.free)
		}
	}
	t.Logf("examined %d control group layouts", len(tests))
}

func TestThisMachine(t *testing.T) {
	m := Read(os.DirFS("/"))
	t.Logf("%+v", m)
	free, err := DiskFree(filepath.Join(t.TempDir(), "not", "there"))
	if err != nil || free <= 0 {
		t.Errorf("free disk %d, %v", free, err)
	}
}
