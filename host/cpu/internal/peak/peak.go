// Package peak has loops of nothing but arithmetic in registers, so that a benchmark can
// say what share of the cores' speed it reaches.
package peak
