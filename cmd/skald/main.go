// Command skald turns lyrics and a description into a song: `skald sing` makes one
// song into a file, `skald serve` answers HTTP requests, and the other commands look
// at checkpoints and at the machine. `skald --help` lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Exit codes, as documented in the help.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitSignal  = 128 // plus the signal's number: 130 for an interrupt
)

func main() {
	ctx, stop := untilSignal(context.Background())
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program with nothing taken from the process, so that tests can
// call it. It returns the exit code.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	warnings := bindEnvironment(root, environ)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	for _, w := range warnings {
		fmt.Fprintln(stderr, "skald: warning:", w)
	}
	err := root.ExecuteContext(ctx)
	var interrupted *signalError
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &interrupted):
		fmt.Fprintln(stderr, "skald:", interrupted)
		return exitSignal + int(interrupted.signal)
	case errors.As(err, &usage):
		printError(stderr, err)
		return exitUsage
	}
	printError(stderr, err)
	return exitFailure
}

// printError writes one line for each error that errors.Join put together.
func printError(w io.Writer, err error) {
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintln(w, "skald:", line)
	}
}

// usageError is a command line that asks for something that cannot be.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string {
	if e.signal == syscall.SIGINT {
		return "interrupted"
	}
	return e.signal.String()
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends, with a
// *signalError as its cause. The second one kills the process as usual.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&signalError{s.(syscall.Signal)})
			select {
			case again := <-signals: // came before Stop: nobody else will see it
				if self, err := os.FindProcess(os.Getpid()); err == nil {
					_ = self.Signal(again)
				}
			default:
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
