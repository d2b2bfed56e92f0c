package host

import "skald/host/compute"

// Found is a device of this machine.
type Found struct {
	Device string // as Open takes it
	Info   compute.Info
	Memory compute.MemoryInfo
	Usable bool
	Chosen bool   // by auto
	Why    string // it is usable, chosen, or not

	Sensors *compute.Sensors // what the GPU's own monitor says
	Unread  string           // or why it says nothing
}

// Find looks for devices: GPUs first, the processor last.
func Find() ([]Found, error) {
	found, err := findCUDA()
	d, failed := openCPU("cpu", Options{})
	if failed != nil {
		return nil, failed
	}
	defer d.Close()
	processor := Found{Device: "cpu", Info: d.Info(), Memory: d.Memory(), Usable: true, Why: "it is always there"}
	for i := range found {
		f := &found[i]
		switch {
		case !f.Usable:
		case i == 0:
			f.Chosen, f.Why = true, "it is the first GPU"
		default:
			f.Why = "auto takes the first GPU only: name it to use it"
		}
	}
	switch {
	case err != nil:
		processor.Chosen, processor.Why = true, err.Error()
	case !found[0].Usable:
		processor.Chosen, processor.Why = true, "the first GPU cannot be used"
	}
	return append(found, processor), nil
}
