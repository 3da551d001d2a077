//go:build linux && arm64 && !ringo_nogpu

package dl

// Call calls the function and puts what it returns into Result.
func (f *Frame) Call() { f.Result = Call(f.Fn, f.Args[:]...) }
