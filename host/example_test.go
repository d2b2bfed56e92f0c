package host_test

import (
	"fmt"

	"skald/host"
)

func ExampleOpen() {
	dev, err := host.Open("cpu", host.Options{Threads: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	fmt.Println(dev.Info().Kind, dev.Info().Threads)
	// Output: cpu 1
}
