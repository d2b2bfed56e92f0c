//go:build noasm || !(amd64 || arm64)

package cpu

// machineLevels returns the levels this machine has, and the one that is fastest.
func machineLevels() (available []level, fastest level) {
	return []level{levelGo}, levelGo
}

// machineKernels returns the kernels of a level that the machine has.
func machineKernels(level) kernels { return portableKernels() }
