// Package peak has loops of nothing but arithmetic in registers, or nothing but reading,
// so that a benchmark can say what share of the machine's speed it reaches.
package peak
