//go:build ringo_nogpu || ringo_host

package dl

// why is the reason in the error of Open.
const why = "it was built with the tag ringo_nogpu or ringo_host"
