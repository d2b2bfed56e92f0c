package main

import (
	"strings"
	"testing"
)

// TestWords compares instructions that are written as words with what GNU as 2.40 makes
// of them.
func TestWords(t *testing.T) {
	fn := &function{}
	v := func(n int) vector { return vector{n, neonBytes} }
	for _, c := range []struct {
		write      func()
		text, want string
	}{
		{func() { fn.word(fadd4S, "FADD", v(1), v(18), v(31)) }, "fadd v1.4s, v18.4s, v31.4s", "0x4e3fd641"},
		{func() { fn.word(fsub4S, "FSUB", v(30), v(2), v(17)) }, "fsub v30.4s, v2.4s, v17.4s", "0x4eb1d45e"},
		{func() { fn.word(fmul4S, "FMUL", v(7), v(16), v(8)) }, "fmul v7.4s, v16.4s, v8.4s", "0x6e28de07"},
		{func() { fn.word(fdiv4S, "FDIV", v(19), v(20), v(21)) }, "fdiv v19.4s, v20.4s, v21.4s", "0x6e35fe93"},
		{func() { fn.word(fmax4S, "FMAX", v(0), v(31), v(1)) }, "fmax v0.4s, v31.4s, v1.4s", "0x4e21f7e0"},
		{func() { fn.word(fmla4S, "FMLA", v(9), v(22), v(15)) }, "fmla v9.4s, v22.4s, v15.4s", "0x4e2fcec9"},
		{func() { fn.word(fmls4S|is2D, "FMLS", v(20), v(1), v(30)) }, "fmls v20.2d, v1.2d, v30.2d", "0x4efecc34"},
		{func() { fn.word(fmlaByElement|1<<21|1<<11, "FMLA", v(3), v(17), v(30)) }, "fmla v3.4s, v17.4s, v30.s[3]", "0x4fbe1a23"},
		{func() { fn.word(fcmeq4S, "FCMEQ", v(2), v(19), v(23)) }, "fcmeq v2.4s, v19.4s, v23.4s", "0x4e37e662"},
		{func() { fn.word(fcmgt4S, "FCMGT", v(28), v(6), v(25)) }, "fcmgt v28.4s, v6.4s, v25.4s", "0x6eb9e4dc"},
		{func() { fn.word(add4S, "ADD", v(5), v(14), v(26)) }, "add v5.4s, v14.4s, v26.4s", "0x4eba85c5"},
		{func() { fn.word(bit16B, "BIT", v(24), v(3), v(10)) }, "bit v24.16b, v3.16b, v10.16b", "0x6eaa1c78"},
		{func() { fn.word(bif16B, "BIF", v(10), v(24), v(3)) }, "bif v10.16b, v24.16b, v3.16b", "0x6ee31f0a"},
		{func() { fn.word(zip2of4, "ZIP2", v(11), v(4), v(29)) }, "zip2 v11.4s, v4.4s, v29.4s", "0x4e9d788b"},
		{func() { fn.word(zip1of2, "ZIP1", v(29), v(11), v(4)) }, "zip1 v29.2d, v11.2d, v4.2d", "0x4ec4397d"},
		{func() { fn.word2(fneg4S, "FNEG", v(22), v(11)) }, "fneg v22.4s, v11.4s", "0x6ea0f976"},
		{func() { fn.word2(cmlt4S, "CMLT", v(12), v(27)) }, "cmlt v12.4s, v27.4s, #0", "0x4ea0ab6c"},
		{func() { fn.word2(umaxv4S, "UMAXV", v(27), v(14)) }, "umaxv s27, v14.4s", "0x6eb0a9db"},
		{func() { fn.word2(not16B, "NOT", v(13), v(30)) }, "not v13.16b, v30.16b", "0x6e205bcd"},
		{func() { fn.word2(dupS0, "DUP", v(6), v(25)) }, "dup v6.4s, v25.s[0]", "0x4e040726"},
		{func() { fn.word2(shl|(32+23)<<16, "SHL", v(8), v(29)) }, "shl v8.4s, v29.4s, #23", "0x4f3757a8"},
		{func() { fn.word2(shl|(64+63)<<16, "SHL", v(29), v(8)) }, "shl v29.2d, v8.2d, #63", "0x4f7f551d"},
		{func() { fn.word2(ushr|(64-16)<<16, "USHR", v(4), v(21)) }, "ushr v4.4s, v21.4s, #16", "0x6f3006a4"},
		{func() { fn.word2(shll4S, "SHLL", v(16), v(5)) }, "shll v16.4s, v5.4h, #16", "0x2e6138b0"},
		{func() { fn.word2(shll2, "SHLL2", v(5), v(16)) }, "shll2 v5.4s, v16.8h, #16", "0x6e613a05"},
		{func() { fn.word2(xtn4H, "XTN", v(18), v(7)) }, "xtn v18.4h, v7.4s", "0x0e6128f2"},
		{func() { fn.word2(fcvtl, "FCVTL", v(21), v(4)) }, "fcvtl v21.2d, v4.2s", "0x0e617895"},
		{func() { fn.word2(fcvtl2, "FCVTL2", v(18), v(5)) }, "fcvtl2 v18.2d, v5.4s", "0x4e6178b2"},
		{func() { fn.word2(fcvtn, "FCVTN", v(29), v(8)) }, "fcvtn v29.2s, v8.2d", "0x0e61691d"},
		{func() { fn.word2(fcvtn2, "FCVTN2", v(6), v(27)) }, "fcvtn2 v6.4s, v27.2d", "0x4e616b66"},
	} {
		fn.text.Reset()
		c.write()
		if got := strings.Fields(fn.text.String())[1]; got != "$"+c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}
