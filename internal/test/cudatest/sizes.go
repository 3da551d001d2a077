package cudatest

import "strconv"

// Sizes that are too large, as far as an int can have them.
const (
	tooMuch = 1 << min(50, strconv.IntSize-2) // bytes that no GPU has
	beyond  = 1 << min(40, strconv.IntSize-2) // bytes that no allocation here has
)
