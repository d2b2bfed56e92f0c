package cpu_test

import (
	"fmt"

	"skald/host/compute"
	"skald/host/cpu"
)

// A queue runs operations on buffers of its device; here y = x W^T + bias.
func Example() {
	device, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer device.Close()
	queue, _ := device.NewQueue()
	defer queue.Close()

	// Little-endian float32, as in a file: [[1, 2, 0], [0, 1, 1]] and [10, 20].
	one, two := []byte{0, 0, 0x80, 0x3f}, []byte{0, 0, 0, 0x40}
	zero, ten, twenty := []byte{0, 0, 0, 0}, []byte{0, 0, 0x20, 0x41}, []byte{0, 0, 0xa0, 0x41}
	matrix := compute.Tensor{Name: "w", DType: compute.F32, Shape: []int{2, 3}, Data: join(one, two, zero, zero, one, one)}
	vector := compute.Tensor{Name: "b", DType: compute.F32, Shape: []int{2}, Data: join(ten, twenty)}
	w, _ := device.Load(matrix, compute.UseLinear, compute.F32)
	bias, _ := device.Load(vector, compute.UseVector, compute.F32)

	x, _ := device.NewBuffer(compute.F32, 3)
	y, _ := device.NewBuffer(compute.F32, 2)
	queue.Upload(x, []float32{1, 2, 3})
	queue.Linear(x, 1, compute.Linear{Y: y, W: w, Bias: bias})

	out := make([]float32, 2)
	if err := queue.Download(out, y); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out)
	// Output: [15 25]
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
