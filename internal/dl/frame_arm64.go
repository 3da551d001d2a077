//go:build linux && arm64 && !ringo_nogpu && !ringo_host

package dl

// Call calls the function, puts its result into Result, and then calls Next.
func (f *Frame) Call() {
	for ; f != nil; f = f.Next {
		if f.Result = Call(f.Fn, f.Args[:]...); int32(f.Result) != 0 || f.Last != nil && *f.Last != 0 {
			return
		}
	}
}
