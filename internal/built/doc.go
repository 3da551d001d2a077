// Package built says what a program was built with, in constants: the compiler leaves out code that a build does not
// need.
package built
