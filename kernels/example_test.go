package kernels_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"

	"github.com/ringo-go/ringo/kernels"
)

// The average over three ranks: each sum adds one rank's contribution, Finish
// divides by the number of ranks.
func ExampleReducer_Combine() {
	r, err := kernels.NewReducer(kernels.Int8, kernels.Avg, 3)
	if err != nil {
		log.Fatal(err)
	}
	a, b, c := []byte{1, 2}, []byte{3, 4}, []byte{5, 9}
	r.Combine(a, a, b)
	r.Combine(a, a, c)
	r.Finish(a)
	fmt.Println(a)
	// Output: [3 5]
}

// Step by step a bfloat16 sum is rounded after each source; CombineAll adds in
// float32 and rounds once, at the end.
func ExampleReducer_CombineAll() {
	r, err := kernels.NewReducer(kernels.BFloat16, kernels.Sum, 3)
	if err != nil {
		log.Fatal(err)
	}
	large, one := bfloat16(256), bfloat16(1)
	sum := make([]byte, 2)
	r.Combine(sum, large, one)
	r.Combine(sum, sum, one)
	fmt.Println(float(sum))

	r.CombineAll(sum, [][]byte{large, one, one}, ^uint64(0), true)
	fmt.Println(float(sum))
	// Output:
	// 256
	// 258
}

func bfloat16(f float32) []byte {
	return binary.LittleEndian.AppendUint16(nil, uint16(math.Float32bits(f)>>16))
}

func float(b []byte) float32 {
	return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
}
