package dl

// A Frame is a call of a C function by a program that makes many: the program uses
// the Frame again and again, so that a call copies and allocates nothing. One
// goroutine at a time may use it.
type Frame struct {
	Fn     uintptr
	Args   [12]uintptr // integers and pointers; a function may take fewer
	Result uintptr
	Next   *Frame // called after this one, unless its result, an int, is not 0; nil for none
	Last   *int32 // if it points to another number than 0 after Fn has returned, Next is not called either; may be nil
}
