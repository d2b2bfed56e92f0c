package checkpoint_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"skald/host/checkpoint"
)

func ExampleOpen() {
	c, err := checkpoint.Open("MiniMax-Music3")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Check(); err != nil {
		log.Fatal(err) // lists every tensor that does not fit
	}
	weight, _ := c.Tensor("language_model", "model.embed_tokens.weight")
	fmt.Println(c.Name, c.Config.LanguageModel.Layers, weight.DType, weight.Shape)
}

func ExampleCheckpoint_Summary() {
	c, err := checkpoint.Open("MiniMax-Music3")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, component := range c.Summary().Components {
		fmt.Println(component.Component, component.Tensors, component.Parameters, component.DTypes)
	}
}

func ExampleWriteFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "codes.safetensors")

	codes := checkpoint.Tensor{Name: "codes", DType: checkpoint.U8, Shape: []int{2, 3}, Data: []byte{1, 2, 3, 4, 5, 6}}
	if err := checkpoint.WriteFile(path, []checkpoint.Tensor{codes}, nil); err != nil {
		log.Fatal(err)
	}

	f, err := checkpoint.OpenFile(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	t, ok := f.Tensor("codes")
	fmt.Println(ok, t.DType, t.Shape, t.Data)
	// Output: true U8 [2 3] [1 2 3 4 5 6]
}

// A component is written tensor by tensor, without holding it in memory.
func ExampleNewWriter() {
	config := checkpoint.Config{
		ConditionEncoder: checkpoint.ConditionEncoder{HiddenDim: 64, Layers: 8, OutDim: 48},
	}
	var tensors []checkpoint.Tensor
	for _, spec := range checkpoint.Inventory(config) {
		if spec.Component == "condition_encoder" {
			tensors = append(tensors, checkpoint.Tensor{Name: spec.Name, DType: checkpoint.F32, Shape: spec.Shape})
		}
	}
	f, err := os.CreateTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()

	w, err := checkpoint.NewWriter(f, tensors, map[string]string{"format": "pt"})
	if err != nil {
		log.Fatal(err)
	}
	var row [48 * 4]byte
	for _, t := range tensors {
		if err := w.Next(t.Name); err != nil {
			log.Fatal(err)
		}
		for left := t.Elements() * t.DType.Size(); left > 0; left -= min(left, len(row)) {
			if _, err := w.Write(row[:min(left, len(row))]); err != nil {
				log.Fatal(err)
			}
		}
		fmt.Println(t.Name, t.Shape)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// layer_weight_logits [8]
	// layer_scale [1]
	// proj.weight [48 64 3]
	// proj.bias [48]
}
