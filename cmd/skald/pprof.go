package main

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// servePprof serves the profiles of this process, on a loopback address only: they tell
// what is in memory. The caller closes the server.
func servePprof(address string, log *slog.Logger) (*http.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usagef("--pprof %s: %w", address, err)
	}
	if a, ok := listener.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		listener.Close()
		return nil, usagef("--pprof %s: only a loopback address such as 127.0.0.1:6060 may be used, since profiles show what is in memory", address)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(listener)
	log.Info("serving profiles", "url", "http://"+listener.Addr().String()+"/debug/pprof/")
	return s, nil
}
