package machine

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cgroupCPUs is the least processor time that any control group above this process
// grants, of either version of the interface; zero without a limit.
func cgroupCPUs(root fs.FS) (cpus float64) {
	eachGroup(root, "cpu", func(dir string, version int) {
		if version == 2 {
			cpus = smaller(cpus, quotaV2(root, dir))
		} else {
			cpus = smaller(cpus, quotaV1(root, dir))
		}
	})
	return cpus
}

// cgroupMemory is the least memory that any control group above this process allows, and
// the least that one of them has left of it; zero without a limit.
func cgroupMemory(root fs.FS) (limit, free int64) {
	eachGroup(root, "memory", func(dir string, version int) {
		limitFile, usageFile, active, inactive := "memory.max", "memory.current", "active_file", "inactive_file"
		if version == 1 {
			limitFile, usageFile, active, inactive = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file"
		}
		most := number(root, path.Join(dir, limitFile))
		if most <= 0 {
			return
		}
		stat := path.Join(dir, "memory.stat")
		cached := statistic(root, stat, active) + statistic(root, stat, inactive)
		left := min(most, max(0, most-number(root, path.Join(dir, usageFile))+cached))
		if limit == 0 || left < free {
			free = left
		}
		limit = smaller(limit, most)
	})
	return limit, free
}

// eachGroup visits the folders of the control groups of one controller that this
// process is in, from the innermost out.
func eachGroup(root fs.FS, controller string, visit func(dir string, version int)) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return
	}
	const mount = "sys/fs/cgroup"
	for line := range strings.SplitSeq(strings.TrimSpace(string(groups)), "\n") {
		// "hierarchy:controllers:path"; version 2 has no controllers.
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "":
			eachAncestor(parts[2], func(group string) { visit(path.Join(mount, group), 2) })
		case slices.Contains(strings.Split(parts[1], ","), controller):
			eachAncestor(parts[2], func(group string) { visit(path.Join(mount, controller, group), 1) })
		}
	}
}

// statistic reads a line "name number" of memory.stat.
func statistic(root fs.FS, file, name string) int64 {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			return integer(value)
		}
	}
	return 0
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
