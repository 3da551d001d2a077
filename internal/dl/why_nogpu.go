//go:build ringo_nogpu || ringo_host

package dl

const why = "it was built with the tag ringo_nogpu or ringo_host"
