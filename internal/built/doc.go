// Package built says what a program was built with. Constants say so, with which the compiler leaves out the code that
// a build does not need.
package built
