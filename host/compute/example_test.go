package compute_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"skald/host/compute"
	"skald/host/cpu"
)

// A product of two rows with a matrix [3, 2] on the processor.
func Example() {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	var data []byte
	for _, v := range []float32{1, 2, 3, 4, 5, 6} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	w, err := dev.Load(compute.Tensor{Name: "w", DType: compute.F32, Shape: []int{3, 2}, Data: data}, compute.UseLinear, compute.F32)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, _ := dev.NewBuffer(compute.F32, 2*2)
	y, _ := dev.NewBuffer(compute.F32, 2*3)
	q, err := dev.NewQueue()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	q.Upload(x, []float32{1, 0, 1, 1})
	q.Linear(x, 2, compute.Linear{Y: y, W: w})
	out := make([]float32, 6)
	if err := q.Download(out, y); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out)
	// Output: [1 3 5 3 7 11]
}
