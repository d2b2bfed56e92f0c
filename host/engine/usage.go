package engine

import "skald/host/compute"

// Usage tells what an engine holds at this moment.
type Usage struct {
	// Blocks of the language model's KV cache. A song reserves what its frames can need
	// when it is admitted, and some are kept for what all prompts have in common.
	KVBlocks, KVBlocksTaken int
	Memory                  compute.MemoryInfo // of the device
	Sensors                 compute.Sensors    // of the device, where it has any
}

// Usage is what is held now; the blocks as of the last frame.
func (e *Engine) Usage() Usage {
	e.mu.Lock()
	u := e.usage
	e.mu.Unlock()
	u.Memory, u.Sensors = e.device.Memory(), e.sensors()
	return u
}
