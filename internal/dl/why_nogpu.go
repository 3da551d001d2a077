//go:build ringo_nogpu

package dl

const why = "it was built with the tag ringo_nogpu"
