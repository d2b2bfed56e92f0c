package nano_test

import (
	"fmt"
	"io/fs"

	"skald/host/nano"
)

func ExampleFS() {
	folders, err := fs.ReadDir(nano.FS(), ".")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range folders {
		if f.IsDir() {
			fmt.Println(f.Name())
		}
	}
	// Output:
	// condition_encoder
	// language_model
	// rvq_depth_decoder
	// scheduler
	// tokenizer
	// transformer
	// vocoder
}
