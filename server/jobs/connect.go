package jobs

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startTimeout bounds the start of the embedded server: reading back a large store after
// a cut of power takes a while.
const startTimeout = 2 * time.Minute

// embed starts a NATS server without a port over a folder.
func embed(o Options) (*natsserver.Server, *nats.Conn, error) {
	s, err := natsserver.NewServer(&natsserver.Options{
		ServerName: "skald", DontListen: true, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, JetStreamMaxMemory: 64 << 20,
		// The bound on songs is kept by deleting old ones; the store's own one leaves room
		// for what is written meanwhile, and for what lies dead in half-full blocks.
		JetStreamMaxStore: 2*o.MaxBytes + 4<<30,
		SyncInterval:      max(o.Sync, time.Second), SyncAlways: o.Sync == 0,
	})
	if err != nil {
		return nil, nil, err
	}
	s.SetLoggerV2(natsLog{o.Logger.With("part", "store")}, false, false, false)
	go s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return nil, nil, errors.New("the store did not start; its log says why")
	}
	conn, err := nats.Connect("", append(connection(o), nats.InProcessServer(s))...)
	if err == nil && !s.JetStreamEnabled() {
		conn.Close()
		err = errors.New("the store did not start: JetStream is off; the log says why")
	}
	if err != nil {
		s.Shutdown()
		return nil, nil, err
	}
	return s, conn, nil
}

// dial connects to an outside NATS server.
func dial(o Options) (*nats.Conn, error) {
	options := append(connection(o), nats.Timeout(5*time.Second))
	if o.Credentials != "" {
		options = append(options, nats.UserCredentials(o.Credentials))
	}
	if o.CA != "" {
		options = append(options, nats.RootCAs(o.CA))
	}
	if o.Cert != "" || o.Key != "" {
		options = append(options, nats.ClientCert(o.Cert, o.Key))
	}
	conn, err := nats.Connect(o.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("NATS at %s: %w", hideUser(o.URL), err)
	}
	return conn, nil
}

// hideUser takes passwords and tokens out of URLs, for messages.
func hideUser(urls string) string {
	parts := strings.Split(urls, ",")
	for i, u := range parts {
		if at := strings.LastIndex(u, "@"); at >= 0 {
			scheme, _, ok := strings.Cut(u, "://")
			if ok {
				scheme += "://"
			} else {
				scheme = ""
			}
			parts[i] = scheme + "***" + u[at:]
		}
	}
	return strings.Join(parts, ",")
}

// connection keeps a connection alive whatever happens to the other side.
func connection(o Options) []nats.Option {
	log := o.Logger
	return []nats.Option{
		nats.Name("skald"), nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("the store is out of reach; trying again", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("the store is there again") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("store", "error", err) }),
	}
}

// natsLog hands the embedded server's messages on.
type natsLog struct{ log *slog.Logger }

func (l natsLog) Noticef(f string, v ...any) { l.log.Debug(fmt.Sprintf(f, v...)) }
func (l natsLog) Warnf(f string, v ...any)   { l.log.Warn(fmt.Sprintf(f, v...)) }
func (l natsLog) Fatalf(f string, v ...any)  { l.log.Error(fmt.Sprintf(f, v...)) }
func (l natsLog) Errorf(f string, v ...any)  { l.log.Error(fmt.Sprintf(f, v...)) }
func (l natsLog) Debugf(string, ...any)      {}
func (l natsLog) Tracef(string, ...any)      {}
