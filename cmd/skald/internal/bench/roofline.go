package bench

import (
	"context"
	"io"
	"time"

	"skald/host/cpu"
)

// Roofline measures what the machine can do in this run, and writes a row for each rate.
func Roofline(ctx context.Context, o Options, out io.Writer) (Rates, error) {
	quiet(ctx, o.Threads, 10*time.Second)
	var r cpu.Rates
	cores := others(func() { r = cpu.MeasureRates(o.Threads) })
	row := Row{Peer: "skald", Threads: o.Threads, LayersTimed: 1, LayersTotal: 1, OtherCores: digits(cores, 2), Disturbed: disturbs(cores, o.Threads)}
	row.Stage, row.Work, row.DType, row.GBytesPerS = "roofline", "read", "bytes", digits(r.Read/1e9, 2)
	if err := row.print(out); err != nil {
		return Rates{}, err
	}
	rates := Rates{Read: r.Read, FLOP: map[string]float64{"fp32": r.FP32, "bf16": r.BF16}}
	row.Work, row.GBytesPerS = "multiply", 0
	for _, dtype := range []string{"fp32", "bf16"} {
		if rates.FLOP[dtype] == 0 {
			continue
		}
		row.DType, row.GFLOPs = dtype, digits(rates.FLOP[dtype]/1e9, 2)
		if err := row.print(out); err != nil {
			return Rates{}, err
		}
	}
	return rates, context.Cause(ctx)
}
