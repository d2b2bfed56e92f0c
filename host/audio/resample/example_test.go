package resample_test

import (
	"fmt"
	"log"

	"skald/host/audio/resample"
)

// A stream comes in blocks of 1024 samples and leaves in blocks of other lengths.
func Example() {
	r, err := resample.New(44100, 48000, 2)
	if err != nil {
		log.Fatal(err)
	}
	left, right := make([]float32, 1024), make([]float32, 1024)
	samples := 0
	for range 44 {
		out, err := r.Process(left, right)
		if err != nil {
			log.Fatal(err)
		}
		samples += len(out[0])
	}
	samples += len(r.Flush()[0])
	fmt.Println(samples, resample.Length(44*1024, 44100, 48000))
	// Output: 49041 49041
}
