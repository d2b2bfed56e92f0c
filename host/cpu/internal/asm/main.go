// Command asm writes the assembler files of package cpu and their Go declarations
// into the working directory. It is run by go generate.
//
// file.go and function.go know what is common to all architectures, amd64.go and
// encode.go the registers and the instructions that Go's assembler lacks. Every
// other file holds the generators of one family of kernels and adds a function to
// files.
package main

import (
	"fmt"
	"os"
)

// files makes everything that is written.
func files() []*file {
	var all []*file
	for _, arch := range []string{"amd64", "arm64"} {
		all = append(all, elements(arch), sums(arch), roundings(arch), softmax(arch), cached(arch), finishing(arch))
	}
	return append(all,
		identification(),
		widening(),
		amxAttention(),
		packing(),
		tiles(),
		pairing(),
		amx(),
		dots(),
		peaks(),
		peaksBF16(),
		widenNEON(),
		packNEON(),
		tilesNEON(),
	)
}

func main() {
	for _, f := range files() {
		for name, text := range f.render() {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
}
