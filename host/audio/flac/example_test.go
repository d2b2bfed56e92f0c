package flac_test

import (
	"fmt"
	"log"
	"math"
	"os"

	"skald/host/audio/flac"
)

// A second of a tone becomes a file whose header is complete, since files can seek.
func Example() {
	file, err := os.CreateTemp("", "tone-*.flac")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()

	e, err := flac.NewEncoder(file, flac.Config{
		SampleRate: 48000, Channels: 1, BitsPerSample: 16,
		Vendor: "skald", Tags: [][2]string{{"TITLE", "A 440"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	tone := make([]int32, 4800)
	for block := range 10 {
		for i := range tone {
			tone[i] = int32(20000 * math.Sin(2*math.Pi*440*float64(block*len(tone)+i)/48000))
		}
		if err := e.Write(tone); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		log.Fatal(err)
	}

	header := make([]byte, 4)
	if _, err := file.ReadAt(header, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", header)
	// Output: fLaC
}
