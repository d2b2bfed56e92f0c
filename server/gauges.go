package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges tell how things are at the moment of a scrape.
type gauges struct{ server *Server }

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("skald_"+name, help, labels, nil)
}

var (
	gaugeReady    = gauge("ready", "Whether songs are accepted.")
	gaugeLoaded   = gauge("model_loaded", "Whether the model is in memory; 0 while it loads or is unloaded because nobody used it.")
	gaugeModel    = gauge("model_info", "The loaded model; always 1.", "model", "precision", "device")
	gaugeVersion  = gauge("build_info", "The version of the program; always 1.", "version")
	gaugeSongs    = gauge("songs", "Songs that wait, are being made, or whose reply is being sent.", "state")
	gaugePlaces   = gauge("song_places", "Songs that may wait, be made and be sent together.")
	gaugeProgress = gauge("last_progress_timestamp_seconds", "When a song last made progress; 0 if none has.")
	gaugeBlocks   = gauge("kv_blocks", "Blocks of the language model's KV cache.", "state")
	gaugeMemory   = gauge("device_memory_size_bytes", "Memory of the device.")
	gaugeFree     = gauge("device_memory_free_bytes", "Memory of the device that is free.")
	gaugeJobs     = gauge("jobs", "Jobs in each state.", "status")
	gaugeOldest   = gauge("jobs_oldest_waiting_seconds", "For how long the job at the head of the queue has waited; 0 if none waits.")
	gaugeStored   = gauge("jobs_stored_bytes", "Songs of jobs in the store.")
	gaugeStore    = gauge("jobs_store_up", "Whether the store of jobs can be reached.")
)

// Of devices with sensors, each where it can be read.
var (
	gaugeUsed        = gauge("device_memory_used_bytes", "Memory of the device that all its users take, by its own monitor.")
	gaugeBusy        = gauge("device_utilisation_ratio", "Share of time in which the device computed.")
	gaugeMemoryBusy  = gauge("device_memory_utilisation_ratio", "Share of time in which the device's memory was read or written.")
	gaugeTemperature = gauge("device_temperature_celsius", "Temperature of the device.")
	gaugePower       = gauge("device_power_watts", "Power that the device takes.")
	gaugeClock       = gauge("device_clock_hertz", "Clock of the device.")
	gaugeECC         = gauge("device_memory_errors", "Uncorrected memory errors since the driver was loaded.")
)

// Describe implements prometheus.Collector.
func (g gauges) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		gaugeReady, gaugeLoaded, gaugeModel, gaugeVersion, gaugeSongs, gaugePlaces, gaugeProgress, gaugeBlocks, gaugeMemory, gaugeFree,
		gaugeJobs, gaugeOldest, gaugeStored, gaugeStore,
		gaugeUsed, gaugeBusy, gaugeMemoryBusy, gaugeTemperature, gaugePower, gaugeClock, gaugeECC,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(metrics chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := g.server
	set(gaugeVersion, 1, s.config.Version)
	if store := s.config.Jobs; store != nil {
		for status, n := range store.Counts() {
			set(gaugeJobs, float64(n), string(status))
		}
		bytes, oldest := store.Usage()
		set(gaugeStored, float64(bytes))
		waits := 0.0
		if !oldest.IsZero() {
			waits = max(time.Since(oldest).Seconds(), 0)
		}
		set(gaugeOldest, waits)
		up := 0.0
		if store.Reachable() {
			up = 1
		}
		set(gaugeStore, up)
	}
	s.mu.Lock()
	m, places, draining := s.singer, s.places, s.draining
	s.mu.Unlock()
	if m == nil || draining {
		set(gaugeReady, 0)
	} else {
		set(gaugeReady, 1)
	}
	if m == nil {
		set(gaugeLoaded, 0)
		return
	}
	info, usage := m.Info(), m.Usage()
	if r, ok := m.(*resting); ok && !r.loaded() {
		set(gaugeLoaded, 0)
	} else {
		set(gaugeLoaded, 1)
	}
	set(gaugeModel, 1, info.Name, info.Precision, info.Device)
	waiting, running := m.Busy()
	set(gaugeSongs, float64(waiting), "waiting")
	set(gaugeSongs, float64(running), "singing")
	set(gaugeSongs, float64(max(places-waiting-running, 0)), "sending")
	set(gaugePlaces, float64(s.allPlaces(m)))
	progress := 0.0
	if t := m.LastProgress(); !t.IsZero() {
		progress = float64(t.UnixMilli()) / 1000
	}
	set(gaugeProgress, progress)
	set(gaugeBlocks, float64(usage.KVBlocksTaken), "taken")
	set(gaugeBlocks, float64(usage.KVBlocks-usage.KVBlocksTaken), "free")
	if usage.Memory.Total > 0 { // unknown otherwise
		set(gaugeMemory, float64(usage.Memory.Total))
		set(gaugeFree, float64(usage.Memory.Free))
	}
	of := usage.Sensors
	sensor(set, gaugeUsed, of.MemoryUsed, 1)
	sensor(set, gaugeBusy, of.Utilisation, 0.01)
	sensor(set, gaugeMemoryBusy, of.MemoryUtilisation, 0.01)
	sensor(set, gaugeTemperature, of.Temperature, 1)
	sensor(set, gaugePower, of.Power, 1)
	sensor(set, gaugeClock, of.Clock, 1e6)
	sensor(set, gaugeECC, of.ECCErrors, 1)
}

// sensor sets a gauge to what a sensor said in some unit, if it said anything.
func sensor[T int | int64 | float64](set func(*prometheus.Desc, float64, ...string), d *prometheus.Desc, v *T, unit float64) {
	if v != nil {
		set(d, float64(*v)*unit)
	}
}
