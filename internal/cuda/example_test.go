package cuda_test

import (
	"fmt"
	"log"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A kernel that is loaded, launched and waited for. Nothing is freed here: the
// primary context is the process's, and everything goes with it.
func Example() {
	const ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 p, .param .u32 v)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [v];
	st.global.u32 [%rd1], %r1;
	ret;
}
`
	d, err := cuda.Open("")
	if err != nil {
		log.Fatal(err) // why there is no driver, and what to do
	}
	ctx, err := d.DevicePrimaryCtxRetain(0)
	if err != nil {
		log.Fatal(err)
	}
	err = cuda.With(d, ctx, func() error {
		m, err := d.ModuleLoadData([]byte(ptx))
		if err != nil {
			return err // with what the compiler says
		}
		f, err := d.ModuleGetFunction(m, "store")
		if err != nil {
			return err
		}
		p, err := d.MemAlloc(4)
		if err != nil {
			return err
		}
		args := struct {
			p uintptr
			v uint32
		}{p, 7}
		if err := d.LaunchKernel(f, &cuda.Launch{}, cuda.ArgsOf(&args)); err != nil {
			return err
		}
		b := make([]byte, 4)
		if err := d.MemcpyDtoH(b, p); err != nil { // waits for the kernel
			return err
		}
		fmt.Println(b)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
