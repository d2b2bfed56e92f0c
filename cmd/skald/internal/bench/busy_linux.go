package bench

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// busy is the processor time that the whole machine and this process have used, in
// seconds; ok is false where the system does not tell.
func busy() (machine, own float64, ok bool) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, false
	}
	const tick = 100 // of Linux on every architecture Go supports
	for i, f := range fields[1:9] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, 0, false
		}
		if i != 3 && i != 4 { // idle, waiting for a disk
			machine += n / tick
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, false
	}
	return machine, seconds(u.Utime) + seconds(u.Stime), true
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
