package request_test

import (
	"fmt"

	"skald/host/engine"
	"skald/server/request"
)

func ExampleParse() {
	rules := request.Rules{
		Info: engine.Info{Name: "song-model", SampleRate: 44100, FrameRate: 25, MaxFrames: 9000},
	}
	_, problems := request.Parse([]byte(`{"lyrics": "[verse]\nHello", "prompt": "folk", "audio_duration_s": 0.1, "seed": -1}`), rules)
	for _, p := range problems {
		fmt.Println(p.Pointer, p.Message)
	}
	// Output:
	// /audio_duration_s audio_duration_s is not a field of this request; did you mean "audio_duration"?
	// /seed seed must be a whole number from 0 to 18446744073709551615; got -1
}
