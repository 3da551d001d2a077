// Package built says what a program was built with. It is constants, so that the compiler leaves out what a build does
// not have.
package built
