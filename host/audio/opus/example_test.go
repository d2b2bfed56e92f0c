package opus_test

import (
	"bytes"
	"fmt"
	"log"

	"skald/host/audio/opus"
)

// A stream to a client that listens while the song is made: half a second at a time.
func Example() {
	var reply bytes.Buffer
	e, err := opus.NewEncoder(&reply, opus.Config{
		Channels: 2, InputRate: 44100,
		Vendor: "skald", Tags: [][2]string{{"TITLE", "Silence"}, {"COMMENT", "machine-made"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	left, right := make([]float32, 1024), make([]float32, 1024)
	for range 47 {
		if err := e.Write(left, right); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Count(reply.Bytes(), []byte("OggS")), "pages")
	// Output: 5 pages
}
