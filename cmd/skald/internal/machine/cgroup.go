package machine

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// cgroupLimits returns the smallest limits that any control group above this process
// sets, of either version of the interface; zero without one.
func cgroupLimits(root fs.FS) (cpus float64, memory int64) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, 0
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(groups)), "\n") {
		// "hierarchy:controllers:path"; version 2 has no controllers.
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount := "sys/fs/cgroup"
		controllers := strings.Split(parts[1], ",")
		for _, controller := range controllers {
			base := mount
			if controller != "" {
				base = path.Join(mount, controller)
			}
			eachAncestor(parts[2], func(group string) {
				dir := path.Join(base, group)
				switch controller {
				case "":
					cpus = smaller(cpus, quotaV2(root, dir))
					memory = smaller(memory, number(root, path.Join(dir, "memory.max")))
				case "cpu":
					cpus = smaller(cpus, quotaV1(root, dir))
				case "memory":
					memory = smaller(memory, number(root, path.Join(dir, "memory.limit_in_bytes")))
				}
			})
		}
	}
	return cpus, memory
}

func eachAncestor(group string, visit func(string)) {
	group = path.Clean("/" + group)
	for {
		visit(group)
		if group == "/" {
			return
		}
		group = path.Dir(group)
	}
}

// smaller ignores values that are not positive: they mean no limit.
func smaller[T int64 | float64](a, b T) T {
	if b > 0 && (a <= 0 || b < a) {
		return b
	}
	return a
}

// quotaV2 reads "quota period" in microseconds, or "max period".
func quotaV2(root fs.FS, dir string) float64 {
	data, err := fs.ReadFile(root, path.Join(dir, "cpu.max"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) != 2 {
		return 0
	}
	return ratio(integer(fields[0]), integer(fields[1]))
}

func quotaV1(root fs.FS, dir string) float64 {
	return ratio(number(root, path.Join(dir, "cpu.cfs_quota_us")), number(root, path.Join(dir, "cpu.cfs_period_us")))
}

func ratio(quota, period int64) float64 {
	if quota <= 0 || period <= 0 {
		return 0
	}
	return float64(quota) / float64(period)
}

func number(root fs.FS, file string) int64 {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	return integer(strings.TrimSpace(string(data)))
}

func integer(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0 // "max": no limit
	}
	return n
}
