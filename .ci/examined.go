//go:build ignore

// Command examined reads the output of `go test -json` on its standard input, prints
// what failed and what was skipped and why, and fails when a test did, or when a
// package that has tests examined nothing: no test ran, or every one was skipped.
//
// Its last line is "N passed, N failed, N skipped", counting tests, subtests (instead
// of the test around them), fuzz seeds and examples.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one line of test2json.
type event struct {
	Action, Package, Test string
	Elapsed               float64
	Output                string
}

// test is one test of a package; the package itself is the one without a name.
type test struct {
	name    string
	result  string // pass, fail, skip; "" when the process died in it
	seconds float64
	output  []string
	parent  bool // has subtests
}

type pkg map[string]*test

func main() {
	packages := map[string]pkg{}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			record(line, packages)
		}
		if err != nil {
			break
		}
	}
	if !report(packages) {
		os.Exit(1)
	}
}

func record(line string, packages map[string]pkg) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		fmt.Print(line) // not from a test: the go tool's own words
		return
	}
	if e.Package == "" {
		fmt.Print(e.Output) // of the compiler
		return
	}
	p := packages[e.Package]
	if p == nil {
		p = pkg{"": {}}
		packages[e.Package] = p
	}
	t := p[e.Test]
	if t == nil {
		t = &test{name: e.Test}
		p[e.Test] = t
		if around, _, ok := cutLast(e.Test, "/"); ok && p[around] != nil {
			p[around].parent = true
		}
	}
	switch e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "pass", "fail", "skip":
		t.result, t.seconds = e.Action, e.Elapsed
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// report prints everything and says whether all is well.
func report(packages map[string]pkg) bool {
	ok := len(packages) > 0
	var passed, failed, skipped int
	var untested []string
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		p := packages[path]
		if p[""].result == "skip" {
			untested = append(untested, path)
			continue
		}
		n := count(path, p)
		passed, failed, skipped = passed+n["pass"], failed+n["fail"], skipped+n["skip"]
		switch {
		case p[""].result != "pass":
			ok = false
			fmt.Printf("FAILED   %s\n%s", path, strings.Join(p[""].output, ""))
		case n["pass"] == 0:
			ok = false
			fmt.Printf("FAILED   %s examined nothing: none passed, %d skipped\n", path, n["skip"])
		}
		fmt.Printf("%5d passed %4d failed %4d skipped %7.1f s  %s\n", n["pass"], n["fail"], n["skip"], p[""].seconds, path)
	}
	if len(untested) > 0 {
		fmt.Println("without tests:", strings.Join(untested, " "))
	}
	slowest(packages)
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return ok
}

// count sums up the tests of a package and prints those that failed or were skipped.
func count(path string, p pkg) map[string]int {
	n := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		t := p[name]
		if name == "" || t.parent && t.result != "fail" {
			continue
		}
		switch t.result {
		case "pass":
		case "skip":
			fmt.Printf("skipped  %s %s: %s\n", path, name, reason(t.output))
		default:
			t.result = "fail"
			fmt.Printf("FAILED   %s %s\n%s", path, name, strings.Join(t.output, ""))
		}
		n[t.result]++
	}
	return n
}

// reason finds what a skipped test said.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "(no reason given)"
	}
	return strings.Join(said, " ")
}

// slowest prints the five tests that took longest, if they took seconds.
func slowest(packages map[string]pkg) {
	type timed struct {
		name    string
		seconds float64
	}
	var all []timed
	for path, p := range packages {
		for name, t := range p {
			if name != "" && t.seconds >= 2 && !strings.Contains(name, "/") {
				all = append(all, timed{path + " " + name, t.seconds})
			}
		}
	}
	slices.SortFunc(all, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range all[:min(5, len(all))] {
		fmt.Printf("%8.1f s  %s\n", t.seconds, t.name)
	}
}
