package mp3_test

import (
	"bytes"
	"fmt"
	"log"

	"skald/host/audio/mp3"
)

// A stream to a client that listens while the song is made.
func Example() {
	var reply bytes.Buffer
	e, err := mp3.NewEncoder(&reply, mp3.Config{
		SampleRate: 44100, Channels: 2,
		Tags: [][2]string{{"TITLE", "Silence"}, {"COMMENT", "machine-made"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	left, right := make([]float32, 1024), make([]float32, 1024)
	for range 43 {
		if err := e.Write(left, right); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", reply.Bytes()[:3])
	// Output: ID3
}
