package main

import (
	"bytes"
	"fmt"
	"strings"
)

// function is one assembler function on its way. Its methods write instructions in
// the order of the calls; a wrong use of the generator panics.
type function struct {
	name, signature, doc string
	frame                int            // bytes of local variables
	size                 int            // bytes of parameters and results
	offsets              map[string]int // of parameters and results
	text                 bytes.Buffer
	used                 [16]bool // general registers handed out, by number
	arm                  bool     // for arm64: op translates
}

// op writes one instruction. Operands are in the order of Go's assembler, the
// destination last; they are registers, memory operands, labels, or an int
// for an immediate.
func (fn *function) op(name string, operands ...any) {
	if fn.arm {
		fn.translate(name, operands)
		return
	}
	texts := make([]string, len(operands))
	for i, o := range operands {
		switch o := o.(type) {
		case int:
			texts[i] = fmt.Sprintf("$%d", o)
		default:
			texts[i] = fmt.Sprint(o)
		}
	}
	fn.line(strings.TrimSpace("\t" + name + " " + strings.Join(texts, ", ")))
}

func (fn *function) line(s string) { fn.text.WriteString("\t" + s + "\n") }

// comment writes a comment that stands for the lines below it.
func (fn *function) comment(format string, a ...any) {
	fn.line("// " + fmt.Sprintf(format, a...))
}

// label is a place to jump to.
type label string

// mark puts a label here.
func (fn *function) mark(l label) { fn.text.WriteString(string(l) + ":\n") }

// argument is the operand of a parameter or result; that of a slice is named NAME_base
// or NAME_len.
func (fn *function) argument(name string) string {
	offset, ok := fn.offsets[name]
	if !ok {
		panic(fmt.Sprintf("%s has no argument %s", fn.name, name))
	}
	return fmt.Sprintf("%s+%d(FP)", name, offset)
}

// raw writes bytes that Go's assembler has no name for.
func (fn *function) raw(bytes []byte, format string, a ...any) {
	texts := make([]string, len(bytes))
	for i, b := range bytes {
		texts[i] = fmt.Sprintf("BYTE $0x%02x", b)
	}
	fn.line(strings.Join(texts, "; ") + " // " + fmt.Sprintf(format, a...))
}
