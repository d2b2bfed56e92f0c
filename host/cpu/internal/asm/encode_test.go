package main

import (
	"fmt"
	"testing"
)

// TestEncodings compares with the bytes that GNU as 2.40 gives.
func TestEncodings(t *testing.T) {
	z := vectors(64, 0, 32)
	y := vectors(32, 0, 16)
	const ax, cx, r8, r12, r13 general = 0, 1, 8, 12, 13
	dot := opcode{prefixF3, 2, 0, 0x52}
	load, store := opcode{prefixF2, 2, 0, 0x4b}, opcode{prefixF3, 2, 0, 0x4b}
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{evex(dot, z[1], z[2], z[3], false), "62f26e4852cb"},
		{evex(dot, z[9], z[20], z[31], false), "62125e4052cf"},
		{evex(dot, y[12], y[14], y[9], false), "62520e2852e1"},
		{evex(dot, z[17], z[2], at(ax, 0x12345), true), "62e26e58528845230100"},
		{evex(dot, z[8], z[30], at(r12, 0x10000), false), "62520e4052842400000100"},
		{evex(dot, z[24], z[5], indexed(r13, r8, 4, 0x10000), false), "6202564852848500000100"},
		{evex(opcode{prefixF2, 2, 0, 0x72}, z[4], z[25], z[17], false), "62b2374072e1"},
		{vex(opcode{prefixNone, 2, 0, 0x49}, 0, 0, at(ax, 0x1000)), "c4e278498000100000"},
		{vex(opcode{prefixNone, 2, 0, 0x49}, 0, 0, 0), "c4e27849c0"},
		{vex(opcode{prefixF2, 2, 0, 0x49}, 5, 0, 0), "c4e27b49e8"},
		{vex(load, 3, 0, indexed(cx, r12, 1, 0x1000)), "c4a27b4b9c2100100000"},
		{vex(load, 7, 0, indexed(r8, cx, 2, 0x1000)), "c4c27b4bbc4800100000"},
		{vex(store, 2, 0, indexed(ax, cx, 1, 0x1000)), "c4e27a4b940800100000"},
		{vex(opcode{prefixF3, 2, 0, 0x5c}, 1, 6, 4), "c4e24a5ccc"},
	} {
		if got := fmt.Sprintf("%x", c.got); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
