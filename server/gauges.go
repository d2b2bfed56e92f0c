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

// Describe implements prometheus.Collector.
func (g gauges) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		gaugeReady, gaugeModel, gaugeVersion, gaugeSongs, gaugePlaces, gaugeProgress, gaugeBlocks, gaugeMemory, gaugeFree,
		gaugeJobs, gaugeOldest, gaugeStored, gaugeStore,
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
		return
	}
	info, usage := m.Info(), m.Usage()
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
}
