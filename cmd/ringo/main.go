// Command ringo measures, explains and simulates collective communication, and
// starts programs that use it. "ringo help" says how.
package main

import "github.com/ringo-go/ringo/cmd/command"

func main() { command.Main() }
