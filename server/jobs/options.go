package jobs

import (
	"log/slog"
	"time"
)

// Options say where jobs are kept and for how long.
type Options struct {
	// Dir is the folder of the embedded store. One process uses it at a time.
	Dir     string
	Scratch bool // Close removes Dir
	// URL names an outside NATS server, or several separated by commas, instead of Dir.
	URL         string
	Credentials string // file with a user's JWT and seed
	CA          string // file of the authority that signed the NATS server's certificate
	Cert, Key   string // files of a client certificate

	Sync     time.Duration // how often the embedded store is flushed to disk; 0: with every write
	Keep     time.Duration // how long ended jobs stay; 0: 7 days
	MaxBytes int64         // of stored songs; the oldest ended jobs go first; 0: 10 GiB
	MaxJobs  int           // that may wait; 0: 1000
	Tries    int           // after which a job that ends its worker fails; 0: 3
	Silence  time.Duration // after so long without a sign of its worker, a job begins again; 0: 10 s
	Replicas int           // copies in an outside cluster; 0: 1

	Logger *slog.Logger // nil: nothing is logged
	now    func() time.Time
}

func (o *Options) complete() {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.Keep, 7*24*time.Hour)
	set(&o.Silence, 10*time.Second)
	if o.MaxBytes == 0 {
		o.MaxBytes = 10 << 30
	}
	if o.MaxJobs == 0 {
		o.MaxJobs = 1000
	}
	if o.Tries == 0 {
		o.Tries = 3
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
}
