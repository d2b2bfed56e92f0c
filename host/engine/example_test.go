package engine_test

import (
	"context"
	"fmt"

	"skald/host/engine"
)

// One song of the built-in model.
func Example() {
	e, err := engine.Open(context.Background(), engine.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	r := e.Defaults()
	r.Lyrics, r.Instructions = "[verse]\n[chorus]", "fast, happy piano, drums"
	if r.MaxFrames, err = e.Frames(0.4); err != nil {
		fmt.Println(err)
		return
	}
	song, err := e.Sing(context.Background(), r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(song.Frames, "frames,", len(song.Samples[0]), "samples a channel at", song.SampleRate, "Hz, ended by", song.EndReason)
	// Output: 10 frames, 17408 samples a channel at 44100 Hz, ended by length
}

// A request with faults names each of them.
func ExampleEngine_Check() {
	e, err := engine.Open(context.Background(), engine.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	r := e.Defaults()
	r.Lyrics, r.Instructions, r.Steps = "la la la", "waltz", 500
	_, err = e.Check(r)
	fmt.Println(err)
	// Output: steps: 500 Euler steps asked for, expected 1 to 200
}
