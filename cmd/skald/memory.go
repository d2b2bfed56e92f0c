package main

import (
	"skald/host/checkpoint"
	"skald/host/compute"
	"skald/host/music3"
)

// memoryNeed is what a model takes in one precision, in bytes. Working buffers, some
// hundred megabytes for the published model, come on top.
type memoryNeed struct {
	Precision music3.Precision `json:"precision"`
	Weights   int64            `json:"weights_bytes"`
	KVCache   int64            `json:"kv_cache_bytes"` // of one song of the greatest length
}

func (n memoryNeed) total() int64 { return n.Weights + n.KVCache }

// memoryNeeds computes the need in every precision from the settings alone.
func memoryNeeds(c checkpoint.Config) []memoryNeed {
	var needs []memoryNeed
	for _, p := range []music3.Precision{music3.FP32, music3.Mixed, music3.BF16} {
		need := memoryNeed{Precision: p}
		for _, spec := range checkpoint.Inventory(c) {
			n := int64(storedType(spec.Component, p).Size())
			for _, d := range spec.Shape {
				n *= int64(d)
			}
			need.Weights += n
		}
		m := c.LanguageModel
		const rows = 2 // conditional and unconditional
		need.KVCache = rows * compute.KVConfig{
			Layers: m.Layers, Heads: m.KVHeads, HeadDim: m.HeadDim,
			BlockSize: m.MaxPositions, Blocks: 1, DType: p.Language(),
		}.Bytes()
		needs = append(needs, need)
	}
	return needs
}

func storedType(component string, p music3.Precision) compute.DType {
	if component == "transformer" || component == "vocoder" {
		return p.Acoustic()
	}
	return p.Language()
}
