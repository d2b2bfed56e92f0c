package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"skald/host/engine"
	"skald/server"
	"skald/server/jobs"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	*engineFlags
	listen       string
	apiKeys      []string
	apiKeyFile   string
	allowNoKey   bool
	tlsCert      string
	tlsKey       string
	pprof        string
	corsOrigins  []string
	aliases      []string
	instructions string
	songs        int
	maxQueue     int
	maxPerKey    int
	songTimeout  time.Duration
	idleUnload   time.Duration
	shutdown     time.Duration
	stall        time.Duration
	logFormat    *choice
	jobs         *jobFlags
}

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serves songs over HTTP",
		Long: `Serves songs over HTTP, compatible with clients of OpenAI's speech endpoint.
Without --model it serves the built-in demonstration model and says so.

The server listens at once and answers /readyz with the progress of loading until
the model is there. The first SIGINT or SIGTERM lets running songs end, the second
one kills.`,
		Example: `  skald serve
  skald serve --model ~/MiniMax-Music3 --listen 0.0.0.0:8087 --api-key-file keys.txt
  SKALD_MODEL=/models/music3 SKALD_LISTEN=:8087 SKALD_API_KEY=... skald serve`,
		Args: exactArgs(),
	}
	f := &serveFlags{engineFlags: addEngineFlags(cmd, "info")}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8087", "`HOST:PORT` to listen on")
	flags.StringSliceVar(&f.apiKeys, "api-key", nil, "`key` that clients must send; others on this machine can read it in the list of processes, so prefer the file or the variable")
	flags.StringVar(&f.apiKeyFile, "api-key-file", "", "`file` of keys, one a line; # begins a comment; read again when it changes and at SIGHUP")
	flags.BoolVar(&f.allowNoKey, "allow-unauthenticated-network", false, "listen on other than loopback addresses although no key is set")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "PEM `file` of the certificate and its chain, to serve HTTPS; read again when it changes and at SIGHUP")
	flags.StringVar(&f.tlsKey, "tls-key", "", "PEM `file` of the certificate's private key")
	flags.StringVar(&f.pprof, "pprof", "", "loopback `HOST:PORT` to serve profiles of this process on")
	flags.StringSliceVar(&f.corsOrigins, "cors-origin", nil, "web `origin` whose pages may call the server, or *")
	flags.StringSliceVar(&f.aliases, "alias", nil, "further `name` the model answers to")
	flags.StringVar(&f.instructions, "default-instructions", "", "instructions for requests that have none, a `text` or @FILE")
	flags.IntVar(&f.songs, "songs", 4, "songs to make at once: they share every step of the language model, and each takes memory")
	flags.IntVar(&f.maxQueue, "max-queue", 16, "songs that may wait while others are made")
	flags.IntVar(&f.maxPerKey, "max-songs-per-key", 0, "songs of one key that may be made or wait at once; 0: no limit")
	flags.DurationVar(&f.songTimeout, "song-timeout", 0, "how long a song may take from its request to its end; 0: no limit")
	flags.DurationVar(&f.idleUnload, "idle-unload", 0, "when no song was asked for so long, free the model's memory and load it again for the next; 0: never")
	flags.DurationVar(&f.shutdown, "shutdown-timeout", 30*time.Second, "how long a running song may go on after a signal to stop")
	flags.DurationVar(&f.stall, "stall-after", 10*time.Minute, "without progress for so long, /healthz reports a stalled engine")
	f.jobs = addJobFlags(cmd)
	f.logFormat = choiceFlag(cmd, "log-format", "text", "form of the log lines", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd) }
	return cmd
}

func (f *serveFlags) run(cmd *cobra.Command) (err error) {
	log := f.logger(cmd.ErrOrStderr())
	config, err := f.config(cmd.InOrStdin(), log)
	if err != nil {
		return err
	}
	cert, err := openCertificate(f.tlsCert, f.tlsKey)
	if err != nil {
		return err
	}
	if cert != nil {
		config.TLS = cert.config()
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", f.listen, err)
	}
	defer listener.Close()
	if err := config.CheckListener(listener.Addr()); err != nil {
		return usagef("%w: --api-key-file, --listen or --allow-unauthenticated-network", err)
	}
	store, err := f.jobs.open(cmd.Context(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	config.Jobs, config.WorkerName = store, workerName()
	config.Gateway, config.WorkerOnly = f.jobs.role.value == "gateway", f.jobs.role.value == "worker"
	var options engine.Options
	config.IdleUnload = f.idleUnload
	config.Open = func(ctx context.Context) (*engine.Engine, error) { return engine.Open(ctx, options) }
	s, err := server.New(config)
	if err != nil {
		return &usageError{err}
	}
	defer f.spareProcessors()()
	options, err = f.options(f.songs, log, s.SetLoading)
	if err != nil {
		return err
	}
	if f.pprof != "" {
		profiles, err := servePprof(f.pprof, log)
		if err != nil {
			return err
		}
		defer profiles.Close()
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	defer f.startReloading(ctx, log, s, cert)()
	loaded := make(chan *engine.Engine, 1)
	go func() {
		var e *engine.Engine
		var err error
		if config.Gateway {
			err = f.findWorkers(ctx, log, store, s)
		} else {
			e, err = f.loadModel(ctx, log, options, s)
		}
		if err != nil {
			cancel(err)
		}
		loaded <- e
	}()
	err = s.Run(ctx, listener)
	cancel(nil) // when Run failed by itself, loading ends too
	if e := <-loaded; e != nil {
		err = errors.Join(err, e.Close())
	}
	// A signal is the usual end; a model that did not load is not.
	if cmd.Context().Err() == nil {
		if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
			err = errors.Join(why, err)
		}
	}
	return err
}

// loadModel makes the server serve a model of its own.
func (f *serveFlags) loadModel(ctx context.Context, log *slog.Logger, o engine.Options, s *server.Server) (*engine.Engine, error) {
	e, err := engine.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", f.modelName(), err)
	}
	announce(log, e.Info())
	if err := s.SetEngine(e); err != nil {
		return e, fmt.Errorf("taking jobs: %w", err)
	}
	return e, nil
}

// findWorkers makes the server serve the model of workers elsewhere, once there is one.
func (f *serveFlags) findWorkers(ctx context.Context, log *slog.Logger, store *jobs.Store, s *server.Server) error {
	log.Info("waiting for a worker")
	g, err := store.NewGateway(ctx, f.jobs.gatewayModel)
	if err != nil {
		return err
	}
	info := g.Info()
	log.Info("ready", "model", info.Name, "workers", g.Workers(), "songs", info.Songs)
	s.SetGateway(g)
	return nil
}

// spareProcessors lets Go run more threads than the model computes on. The model keeps
// --threads and one of its own busy, often in code that Go cannot interrupt; on further
// ones requests run at once, since the system interrupts whatever it likes. On 2 cores
// under load it takes the 99th percentile of /healthz from 240 ms to 10 ms.
func (f *serveFlags) spareProcessors() (restore func()) {
	const spare = 4
	before := runtime.GOMAXPROCS(0)
	if f.threads == 0 {
		f.threads = before
	}
	runtime.GOMAXPROCS(max(before, f.threads+spare))
	return func() { runtime.GOMAXPROCS(before) }
}

// startReloading keeps the keys and the certificate as their files are. Without files a
// hangup ends the server as usual.
func (f *serveFlags) startReloading(ctx context.Context, log *slog.Logger, s *server.Server, cert *certificate) (stop func()) {
	var sources []source
	if f.apiKeyFile != "" {
		sources = append(sources, source{"API keys", []string{f.apiKeyFile}, func() error {
			keys, err := f.keys()
			if err != nil {
				return err
			}
			return s.SetAPIKeys(keys)
		}})
	}
	if cert != nil {
		sources = append(sources, source{"certificate", []string{f.tlsCert, f.tlsKey}, cert.load})
	}
	if len(sources) == 0 {
		return func() {}
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go reload(ctx, log, hangups, reloadInterval, sources...)
	return func() { signal.Stop(hangups) }
}

// workerName tells this process from others in records of jobs.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// announce says what is served, and what is wrong with it.
func announce(log *slog.Logger, info engine.Info) {
	if info.BuiltIn {
		log.Warn("serving the built-in demonstration model, a toy that does not sing; --model names the folder of a real one")
	}
	for _, w := range info.Warnings {
		log.Warn(w)
	}
	log.Info("ready", "model", info.Name, "precision", info.Precision, "device", info.Device)
}

// logger is that of engineFlags, in the form asked for.
func (f *serveFlags) logger(w io.Writer) *slog.Logger {
	if f.logFormat.value == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: f.level()}))
	}
	return f.engineFlags.logger(w)
}

func (f *serveFlags) config(stdin io.Reader, log *slog.Logger) (server.Config, error) {
	keys, err := f.keys()
	if err != nil {
		return server.Config{}, err
	}
	instructions, err := readText("default-instructions", f.instructions, stdin)
	if err != nil {
		return server.Config{}, err
	}
	if f.songs < 1 {
		return server.Config{}, usagef("--songs %d: want 1 or more", f.songs)
	}
	for _, x := range []struct {
		name     string
		negative bool
		value    any
	}{
		{"max-queue", f.maxQueue < 0, f.maxQueue}, {"max-songs-per-key", f.maxPerKey < 0, f.maxPerKey},
		{"song-timeout", f.songTimeout < 0, f.songTimeout}, {"idle-unload", f.idleUnload < 0, f.idleUnload}, {"shutdown-timeout", f.shutdown < 0, f.shutdown},
	} {
		if x.negative {
			return server.Config{}, usagef("--%s %v: must not be negative", x.name, x.value)
		}
	}
	if f.stall <= 0 {
		return server.Config{}, usagef("--stall-after %v: must be positive", f.stall)
	}
	c := server.Config{
		APIKeys: keys, AllowNoKey: f.allowNoKey, CORSOrigins: f.corsOrigins,
		Aliases: f.aliases, Instructions: instructions,
		MaxQueue: f.maxQueue, MaxSongsPerKey: f.maxPerKey, SongTimeout: f.songTimeout,
		DrainTimeout: f.shutdown, StallAfter: f.stall,
		Version: readBuildFacts().Version, Logger: log,
	}
	// Zero stands for the default there and for none here.
	if c.MaxQueue == 0 {
		c.MaxQueue = -1
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = time.Nanosecond
	}
	return c, nil
}
