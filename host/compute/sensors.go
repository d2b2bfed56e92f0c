package compute

// Sensors is what a device's own monitor says; what is nil or "" is unknown.
type Sensors struct {
	Name   string `json:"name,omitempty"`
	Driver string `json:"driver,omitempty"`

	MemoryTotal *int64 `json:"memory_total_bytes,omitempty"`
	MemoryUsed  *int64 `json:"memory_used_bytes,omitempty"`
	MemoryFree  *int64 `json:"memory_free_bytes,omitempty"`

	Utilisation       *int `json:"utilisation_percent,omitempty"`        // of time something was computed
	MemoryUtilisation *int `json:"memory_utilisation_percent,omitempty"` // of time memory was read or written

	Temperature *int     `json:"temperature_celsius,omitempty"`
	Power       *float64 `json:"power_watts,omitempty"`
	Clock       *int     `json:"clock_mhz,omitempty"`
	MemoryClock *int     `json:"memory_clock_mhz,omitempty"`
	ECC         *bool    `json:"ecc,omitempty"`
	ECCErrors   *int64   `json:"ecc_uncorrected_errors,omitempty"` // since the driver was loaded
}
