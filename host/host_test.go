package host_test

import (
	"errors"
	"strings"
	"testing"

	"skald/host"
)

func TestOpen(t *testing.T) {
	names := []string{"auto", "cpu", ""}
	for _, name := range names {
		d, err := host.Open(name, host.Options{Threads: 2})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if info := d.Info(); name != "cpu" && info.Kind == "cuda" {
			// a machine and a build with a GPU
		} else if info.Kind != "cpu" || info.Threads != 2 || info.Name == "" || info.Detail == "" {
			t.Errorf("%q: %+v", name, info)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"cuda", "cuda:0", "cuda:3"} {
		d, err := host.Open(name, host.Options{})
		if err == nil {
			d.Close() // a machine and a build with a GPU
		} else if errors.Is(err, host.ErrNoCUDA) && !strings.Contains(err.Error(), "use device cpu") {
			t.Errorf("%q: the error does not say what to do: %v", name, err)
		}
	}
	bad := []string{"gpu", "CPU", "cpu:0", "auto:1", "cuda:", "cuda:-1", "cuda:x", "cuda:0:1", "cuda:99999", ":"}
	for _, name := range bad {
		d, err := host.Open(name, host.Options{})
		if err == nil {
			d.Close()
			t.Errorf("%q opened", name)
		} else if !strings.Contains(err.Error(), `"`+name+`"`) || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: the error names neither it nor what is wanted: %v", name, err)
		}
	}
	if _, err := host.Open("cpu", host.Options{Threads: -1}); err == nil {
		t.Error("-1 threads opened")
	}
	t.Logf("%d names", len(names)+3+len(bad)+1)
}
