package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"skald/server/jobs"
)

// jobFlags say where jobs are kept.
type jobFlags struct {
	stateDir string
	sync     time.Duration
	keep     time.Duration
	keepSize string
	maxJobs  int
	tries    int
	silence  time.Duration

	role         *choice
	gatewayModel string
	natsURL      string
	natsCreds    string
	natsCA       string
	natsCert     string
	natsKey      string
	natsReplicas int
}

func addJobFlags(cmd *cobra.Command) *jobFlags {
	f := &jobFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.stateDir, "state-dir", "", "`folder` to keep jobs and finished songs in; one server uses it at a time (default: one of the user's, see docs/jobs.md)")
	complete(cmd, "state-dir", completeFolders)
	flags.DurationVar(&f.sync, "sync-interval", 0, "how often jobs are forced to disk: 0 with every write, so that a cut of power loses nothing that was accepted")
	flags.DurationVar(&f.keep, "keep", 7*24*time.Hour, "how long ended jobs and their songs are kept")
	flags.StringVar(&f.keepSize, "keep-size", "10GiB", "`size` of all kept songs; beyond it the oldest are deleted")
	flags.IntVar(&f.maxJobs, "max-jobs", 1000, "jobs that may wait")
	flags.IntVar(&f.tries, "job-tries", 3, "tries after which a job that stops its server is given up")
	flags.DurationVar(&f.silence, "worker-silence", 10*time.Second, "after so long without a sign of life of its worker, a job begins again")
	f.role = choiceFlag(cmd, "role", "all", "all; gateway takes requests and lets workers make the songs; worker makes songs and serves only probes and metrics", "all", "gateway", "worker")
	flags.StringVar(&f.gatewayModel, "gateway-model", "", "`name` of the model that a gateway serves (default: that of the first worker it hears of)")
	flags.StringVar(&f.natsURL, "nats-url", "", "`URL` of a NATS server with JetStream, or several separated by commas, that gateways and workers share instead of a state directory")
	flags.StringVar(&f.natsCreds, "nats-credentials", "", "`file` with the JWT and the seed of a NATS user")
	flags.StringVar(&f.natsCA, "nats-ca", "", "PEM `file` of the authority that signed the NATS server's certificate")
	flags.StringVar(&f.natsCert, "nats-cert", "", "PEM `file` of a client certificate for NATS")
	flags.StringVar(&f.natsKey, "nats-key", "", "PEM `file` of its private key")
	flags.IntVar(&f.natsReplicas, "nats-replicas", 1, "copies of everything in a NATS cluster: 1, 3 or 5")
	return f
}

// check refuses what does not go together.
func (f *jobFlags) check() error {
	switch {
	case f.natsURL == "" && f.role.value != "all":
		return usagef("--role %s needs --nats-url: gateways and workers meet at a NATS server", f.role.value)
	case f.natsURL != "" && f.stateDir != "":
		return usagef("--state-dir and --nats-url are two places to keep jobs in; give one")
	case f.natsURL == "" && (f.natsCreds != "" || f.natsCA != "" || f.natsCert != "" || f.natsKey != ""):
		return usagef("--nats-credentials, --nats-ca, --nats-cert and --nats-key need --nats-url")
	case (f.natsCert == "") != (f.natsKey == ""):
		return usagef("--nats-cert and --nats-key go together")
	case f.gatewayModel != "" && f.role.value != "gateway":
		return usagef("--gateway-model is for --role gateway")
	}
	return nil
}

// open opens the store of jobs.
func (f *jobFlags) open(ctx context.Context, log *slog.Logger) (*jobs.Store, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	size, err := parseSize(f.keepSize)
	if err != nil || size == 0 {
		return nil, usagef("--keep-size %q is not a size such as 10GiB or 500MB", f.keepSize)
	}
	if f.sync < 0 || f.keep <= 0 || f.maxJobs < 1 || f.tries < 1 || f.silence < time.Second {
		return nil, usagef("--sync-interval must not be negative; --keep, --max-jobs and --job-tries must be positive, --worker-silence at least 1s")
	}
	o := jobs.Options{
		Dir: f.stateDir, Sync: f.sync, Keep: f.keep, MaxBytes: size, MaxJobs: f.maxJobs, Tries: f.tries, Silence: f.silence, Logger: log,
	}
	if f.natsURL != "" {
		o.URL, o.Credentials, o.CA, o.Cert, o.Key, o.Replicas = f.natsURL, f.natsCreds, f.natsCA, f.natsCert, f.natsKey, f.natsReplicas
		s, err := jobs.Open(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("--nats-url: %w", err)
		}
		log.Info("jobs are kept by NATS", "role", f.role.value)
		return s, nil
	}
	if o.Dir != "" {
		s, err := jobs.Open(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("--state-dir: %w", err)
		}
		log.Info("jobs are kept", "state_dir", o.Dir)
		return s, nil
	}
	return f.openUsual(ctx, o, log)
}

// openUsual takes the user's own folder, or, when another server has it or there is none,
// one that goes with the process.
func (f *jobFlags) openUsual(ctx context.Context, o jobs.Options, log *slog.Logger) (*jobs.Store, error) {
	dir, err := userStateDir()
	if err == nil {
		o.Dir = dir
		s, err := jobs.Open(ctx, o)
		if err == nil {
			log.Info("jobs are kept", "state_dir", dir)
			return s, nil
		}
		if !errors.Is(err, jobs.ErrLocked) && !errors.Is(err, os.ErrPermission) {
			return nil, err
		}
		log.Warn("the usual state directory cannot be used; jobs end with this server unless --state-dir names another", "error", err)
	} else {
		log.Warn("there is no usual state directory; jobs end with this server unless --state-dir names one", "error", err)
	}
	if o.Dir, err = os.MkdirTemp("", "skald-jobs-"); err != nil {
		return nil, err
	}
	o.Scratch = true
	return jobs.Open(ctx, o)
}

// userStateDir is where the system wants a program to keep what should outlive it.
func userStateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "skald"), nil
	}
	switch runtime.GOOS {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "skald"), nil
		}
	case "darwin":
		home, err := os.UserHomeDir()
		return filepath.Join(home, "Library", "Application Support", "skald"), err
	}
	home, err := os.UserHomeDir()
	if err == nil && !filepath.IsAbs(home) {
		err = fmt.Errorf("the home folder %q is not absolute", home)
	}
	return filepath.Join(home, ".local", "state", "skald"), err
}
