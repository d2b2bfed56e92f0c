// Package server serves songs over HTTP.
//
// The contract is a superset of OpenAI's speech endpoint: /v1/audio/speech
// answers with the audio of one song, /v1/models tells what is served, /healthz,
// /readyz and /metrics are for those who watch over it. Errors are OpenAI's error object. What a request may say is
// the business of package request; this package does the rest: keys, limits, the
// queue, shutdown.
//
// A server listens before its model is loaded: until SetEngine, songs are answered
// with 503 and /readyz tells how far loading is.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"skald/host/engine"
	"skald/server/jobs"
	"skald/server/web"
)

// Config holds the operator's choices. The zero value serves loopback addresses
// without a key.
type Config struct {
	APIKeys     []string    // accepted as "Authorization: Bearer KEY"; none: no key is asked for
	AllowNoKey  bool        // serve other than loopback addresses without a key
	CORSOrigins []string    // web origins whose pages may call the server, or "*"; none: CORS is off
	TLS         *tls.Config // of an HTTPS server, with its certificate; nil: plain HTTP

	Aliases      []string // further names the model answers to
	Instructions string   // for requests that have none; "": the checkpoint's, if it has any

	MaxQueue       int           // songs that may wait while others are made; 0: 16, negative: none
	MaxSongsPerKey int           // made or waiting; 0: no limit
	SongTimeout    time.Duration // for a song from its request to its end; 0: none
	DrainTimeout   time.Duration // how long a song may go on after Run's context ends; 0: 30 s
	StallAfter     time.Duration // without progress for so long a song has stalled; 0: 10 min

	Jobs       *jobs.Store // keeps the jobs; nil: there are none
	WorkerName string      // of this process, in records of jobs
	Gateway    bool        // songs are made by workers elsewhere
	WorkerOnly bool        // songs are only made for gateways: of the routes there are those for whoever watches

	// IdleUnload, when positive, closes the engine when no song was asked for so long, and
	// Open opens one like it for the next.
	IdleUnload time.Duration
	Open       func(context.Context) (*engine.Engine, error)

	Version string       // of the program
	Logger  *slog.Logger // nil: slog.Default()
}

const (
	defaultMaxQueue     = 16
	defaultDrainTimeout = 30 * time.Second
	defaultStallAfter   = 10 * time.Minute

	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// shutdownGrace is for the replies of songs that were ended by a shutdown.
	shutdownGrace = 5 * time.Second
)

// errDraining ends the songs that a shutdown does not wait for.
var errDraining = errors.New("the server is shutting down")

// singer is what the handlers need of an engine.Engine; tests have their own.
type singer interface {
	Info() engine.Info
	Defaults() engine.Request
	Check(engine.Request) (warnings []string, err error)
	PromptTokens(engine.Request) (int, error)
	Sing(context.Context, engine.Request) (*engine.Song, error)
	Busy() (waiting, running int)
	Usage() engine.Usage
	LastProgress() time.Time
}

// Server serves one model. Its methods are safe for concurrent use.
type Server struct {
	config   Config
	log      *slog.Logger
	keys     atomic.Pointer[keyRing]
	patience patience
	metrics  *metrics
	handler  http.Handler

	songFiles songFiles

	songs     context.Context // ends the songs
	stopSongs context.CancelCauseFunc

	mu        sync.Mutex
	singer    singer // nil while loading
	loadedAt  time.Time
	loading   engine.LoadProgress
	loadingAt time.Time // when that was told
	draining  bool
	idle      chan struct{}  // closed once draining and without songs
	places    int            // taken by songs, from admission until their reply is sent
	placesOf  map[caller]int // those of each key
	resting   *resting       // nil: the engine is never unloaded
	worker    *jobs.Worker   // takes up jobs; nil: this process does not
	busySince time.Time      // when the engine last had nothing to do
	lastSong  time.Duration  // the time the last song took, its queueing included
}

// New makes a server. It fails on a key or an origin that cannot be meant.
func New(c Config) (*Server, error) {
	if c.MaxQueue == 0 {
		c.MaxQueue = defaultMaxQueue
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = defaultDrainTimeout
	}
	if c.StallAfter == 0 {
		c.StallAfter = defaultStallAfter
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	keys, err := newKeyRing(c.APIKeys)
	if err != nil {
		return nil, err
	}
	if err := checkOrigins(c.CORSOrigins); err != nil {
		return nil, err
	}
	s := &Server{config: c, log: c.Logger, patience: defaultPatience, idle: make(chan struct{}), placesOf: map[caller]int{}}
	s.keys.Store(&keys)
	s.metrics = newMetrics()
	s.metrics.registry.MustRegister(gauges{s})
	s.songs, s.stopSongs = context.WithCancelCause(context.Background())
	s.handler = s.routes()
	return s, nil
}

// closeResting closes an engine that was opened again; that of SetEngine is the caller's,
// who may close it too.
func (s *Server) closeResting() {
	s.mu.Lock()
	m := s.resting
	s.mu.Unlock()
	if m == nil {
		return
	}
	if err := m.close(); err != nil {
		s.log.Error("closing the engine", "error", err)
	}
}

// Handler returns the server's routes, for tests and for embedding. Run also sets time
// limits and shuts down gracefully.
func (s *Server) Handler() http.Handler { return s.handler }

// routes is the only place, with middleware.go, that knows the router.
func (s *Server) routes() http.Handler {
	gin.SetMode(gin.ReleaseMode) // or it prints its routes; the mode is the whole process's
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	// No header of a request is believed to tell the client's address. The call only
	// fails for networks that do not parse.
	_ = r.SetTrustedProxies(nil)

	r.Use(s.logRequest, s.recoverPanic, s.cors)
	r.NoRoute(func(c *gin.Context) { s.writeError(c.Writer, errNoRoute(c.Request)) })
	r.NoMethod(func(c *gin.Context) { s.writeError(c.Writer, errNoMethod(c.Request, c.Writer.Header().Get("Allow"))) })

	reading := []string{http.MethodGet, http.MethodHead}
	r.Match(reading, "/", gin.WrapF(web.Page))
	r.Match(reading, "/assets/*file", func(c *gin.Context) {
		if !web.Asset(c.Writer, c.Request, c.Param("file")) {
			s.writeError(c.Writer, errNoRoute(c.Request))
		}
	})
	r.Match(reading, "/healthz", gin.WrapF(s.healthz))
	r.Match(reading, "/readyz", gin.WrapF(s.readyz))

	r.Match(reading, "/openapi.json", gin.WrapF(s.openAPI))
	r.Match(reading, "/metrics", s.requireKey, gin.WrapH(s.metrics.handler()))

	v1 := r.Group("/v1", s.requireKey)
	if !s.config.WorkerOnly {
		v1.Match([]string{http.MethodGet, http.MethodPost}, "/audio/speech", gin.WrapF(s.speech))
		s.routeJobs(v1)
		v1.POST("/music/prompt", gin.WrapF(s.prompt))
	}
	v1.Match(reading, "/models", gin.WrapF(s.models))
	// A model's name may hold slashes.
	v1.Match(reading, "/models/*id", func(c *gin.Context) {
		s.model(c.Writer, c.Request, c.Param("id")[1:])
	})
	return r
}

// CheckListener refuses an address that others can reach when no key is asked for,
// unless AllowNoKey. Run calls it too; a command calls it before it loads a model.
func (c Config) CheckListener(a net.Addr) error {
	if len(c.APIKeys) > 0 || c.AllowNoKey {
		return nil
	}
	switch a := a.(type) {
	case *net.TCPAddr:
		if a.IP.IsLoopback() {
			return nil
		}
	case *net.UnixAddr:
		return nil
	}
	return fmt.Errorf("listening on %s without an API key would let everyone who reaches this machine make songs: set an API key, listen on a loopback address such as 127.0.0.1, or allow it expressly", a)
}

// Run serves the listener until ctx ends, and closes it. Then it goes on with the songs
// that were accepted, refusing new ones, for at most Config.DrainTimeout; songs still
// going on are cancelled and answered with 503. It returns nil after such an end, with
// no request left: at the latest 5 s after DrainTimeout.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	defer l.Close()
	if err := s.config.CheckListener(l.Addr()); err != nil {
		return err
	}
	hs := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.patience.head,
		ReadTimeout:       s.patience.body, // of requests that are refused before their body
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	serve := func() error { return hs.Serve(l) }
	if s.config.TLS != nil {
		hs.TLSConfig = s.config.TLS.Clone()
		serve = func() error { return hs.ServeTLS(l, "", "") } // with HTTP/2
	}
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	s.log.Info("listening", "address", l.Addr().String(), "tls", s.config.TLS != nil)

	select {
	case err := <-ended:
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.drain()
	defer s.closeResting()
	grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	if err := hs.Shutdown(grace); err != nil {
		s.log.Warn("requests were cut off", "error", err)
		return hs.Close()
	}
	return nil
}
