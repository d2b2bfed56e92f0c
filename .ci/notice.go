//go:build ignore

// Command notice checks that NOTICE names every module that ends up in the program,
// with its version, and none that does not.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	var built []string
	for _, tags := range []string{"nocuda", ""} { // with and without CUDA
		list := exec.Command("go", "list", "-tags", tags, "-deps",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/skald")
		list.Env = append(os.Environ(), "CGO_ENABLED=1")
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			fmt.Fprintln(os.Stderr, "notice: go list:", err)
			os.Exit(1)
		}
		built = slices.AppendSeq(built, strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' }))
	}
	slices.Sort(built)
	built = slices.Compact(built)
	text, err := os.ReadFile("NOTICE")
	if err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^  (\S+ v\S+) {2,}\S`).FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	ok := len(built) > 0
	for _, m := range built {
		if !slices.Contains(listed, m) {
			fmt.Printf("NOTICE lacks %s\n", m)
			ok = false
		}
	}
	for _, m := range listed {
		if !slices.Contains(built, m) {
			fmt.Printf("NOTICE names %s, which the program does not contain\n", m)
			ok = false
		}
	}
	fmt.Printf("NOTICE checked against %d modules\n", len(built))
	if !ok {
		os.Exit(1)
	}
}
