package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"skald/host"
)

// version is set by release builds: -ldflags "-X main.version=v1.2.3". Otherwise the
// version comes from what the go tool recorded.
var version string

// buildFacts is what is known about this program.
type buildFacts struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Tags     string `json:"tags"`
	CGO      bool   `json:"cgo"`
	// CUDAArchitectures are those that device code was compiled for; none without CUDA.
	CUDAArchitectures []string `json:"cuda_architectures"`
}

func readBuildFacts() buildFacts {
	facts := buildFacts{
		Version:           version,
		Go:                runtime.Version(),
		Platform:          runtime.GOOS + "/" + runtime.GOARCH,
		CUDAArchitectures: append([]string{}, host.Architectures()...),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return facts
	}
	if facts.Version == "" {
		facts.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			facts.Revision = s.Value
		case "vcs.modified":
			facts.Modified = s.Value == "true"
		case "-tags":
			facts.Tags = s.Value
		case "CGO_ENABLED":
			facts.CGO = s.Value == "1"
		}
	}
	if facts.Version == "" {
		facts.Version = "(devel)"
	}
	return facts
}

func (f buildFacts) print(w io.Writer) {
	fmt.Fprintf(w, "skald %s\n", f.Version)
	if f.Revision != "" {
		changed := ""
		if f.Modified {
			changed = ", with changes"
		}
		fmt.Fprintf(w, "revision            %s%s\n", f.Revision, changed)
	}
	fmt.Fprintf(w, "go                  %s %s, cgo %v\n", f.Go, f.Platform, f.CGO)
	fmt.Fprintf(w, "build tags          %s\n", orNone(f.Tags))
	fmt.Fprintf(w, "CUDA architectures  %s\n", orNone(strings.Join(f.CUDAArchitectures, " ")))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Prints the version, how it was built and for which CUDA architectures",
		Example: "  skald version\n  skald version --json",
		Args:    exactArgs(),
	}
	asJSON := cmd.Flags().Bool("json", false, "print as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		facts := readBuildFacts()
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), facts)
		}
		facts.print(cmd.OutOrStdout())
		return nil
	}
	return cmd
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
