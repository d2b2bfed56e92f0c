package engine

import (
	"time"

	"skald/host/compute"
)

// monitored is a device with sensors.
type monitored interface{ Sensors() compute.Sensors }

// sensors reads the device's, if it has any.
func (e *Engine) sensors() compute.Sensors {
	if d, ok := e.device.(monitored); ok {
		return d.Sensors()
	}
	return compute.Sensors{}
}

// sensorsEvery is how often sensors are read while weights are loaded: it takes about a
// millisecond.
const sensorsEvery = time.Second

// logLoading writes what a device with memory of its own says while weights go there.
func (e *Engine) logLoading(message string, p LoadProgress) {
	if e.device.Info().Kind == "cpu" {
		return
	}
	m, s := e.device.Memory(), p.Sensors
	args := []any{"component", p.Component, "bytes", p.Bytes, "of", p.Total, "gigabytes_per_second", p.BytesPerSecond / 1e9,
		"device_memory_free", m.Free, "device_memory", m.Total}
	if s.MemoryUsed != nil {
		args = append(args, "memory_used", *s.MemoryUsed)
	}
	if s.Utilisation != nil {
		args = append(args, "utilisation_percent", *s.Utilisation)
	}
	if s.MemoryUtilisation != nil {
		args = append(args, "memory_utilisation_percent", *s.MemoryUtilisation)
	}
	e.log.Info(message, args...)
}
