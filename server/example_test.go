package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"skald/host/engine"
	"skald/server"
)

// A server listens at once, loads its model meanwhile, and stops when its context ends.
func Example() {
	s, err := server.New(server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error)
	go func() { done <- s.Run(ctx, listener) }()

	show := func(path string) {
		reply, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer reply.Body.Close()
		body, _ := io.ReadAll(reply.Body)
		fmt.Printf("%d %s", reply.StatusCode, body)
	}
	show("/readyz")

	e, err := engine.Open(ctx, engine.Options{Progress: s.SetLoading})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.SetEngine(e)
	show("/readyz")

	stop()
	fmt.Println(<-done, e.Close())
	// Output:
	// 503 {"status":"loading","stage":"starting","percent":0,"bytes_per_second":0}
	// 200 {"status":"ready","model":"skald-nano"}
	// <nil> <nil>
}
