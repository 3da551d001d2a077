//go:build js || wasip1

package command

const nonblock = 0 // there are no pipes
