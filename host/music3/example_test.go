package music3_test

import (
	"fmt"

	"skald/host/checkpoint"
	"skald/host/music3"
)

// How a song is cut: 301 frames at the published rates.
func ExampleWindows() {
	rates := checkpoint.ConditionEncoder{
		InputSamplingRate: 24000, InputHopLength: 960, OutputSamplingRate: 44100, OutputHopLength: 512,
	}
	for _, w := range music3.Windows(rates, 301) {
		fmt.Printf("frames %d to %d: %d latents, %d samples\n", w.Start, w.End, w.Latents, w.Latents*rates.OutputHopLength-w.Left-w.Right)
	}
	// Output:
	// frames 0 to 200: 689 latents, 220672 samples
	// frames 100 to 300: 689 latents, 176640 samples
	// frames 200 to 301: 347 latents, 133632 samples
}
