package dl

// A Frame is a call of a C function by a program that makes many: it is used
// again and again, so that a call copies and allocates nothing. It is one
// goroutine's while it calls.
type Frame struct {
	Fn     uintptr
	Args   [12]uintptr // integers and pointers; a function may take fewer
	Result uintptr
	Next   *Frame // called after this one, unless its result, an int, is not 0; nil for none
	Last   *int32 // Next is not called if this is not 0 either, once Fn has returned; nil for nothing to look at
}
