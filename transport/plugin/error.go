package plugin

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Result is what a plugin's functions return, NCCL's ncclResult_t.
type Result int32

var resultNames = [...]string{
	"success", "unhandled CUDA error", "system error", "internal error",
	"invalid argument", "invalid usage", "remote error", "in progress",
}

func (r Result) String() string {
	if r >= 0 && int(r) < len(resultNames) {
		return fmt.Sprintf("%s (%d)", resultNames[r], int32(r))
	}
	return fmt.Sprintf("result %d", int32(r))
}

// An Error is what is wrong with a plugin or one of its calls.
type Error struct {
	File    string // of the plugin
	Version int    // of its table, 0 before one was found
	Call    string // the function, "" for the plugin as a whole
	Device  string // "0 mlx5_0"; "" where the call is for none
	Peer    int    // rank at the other end, -1 for none
	Result  Result // of the call; 0 if the call did not return, or its outputs are invalid
	Said    string // the last warning that the plugin wrote before
	Detail  string // what is wrong, where there is no Result
	Err     error  // cause, or nil
}

const remedy = "NCCL_NET_PLUGIN=none goes without plugins"

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "network plugin %s", filepath.Base(e.File))
	if e.Version != 0 {
		fmt.Fprintf(&b, " (v%d)", e.Version)
	}
	for _, part := range []string{e.Call, under("device", e.Device), e.peer(), e.result(), e.Detail} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Said != "" {
		fmt.Fprintf(&b, "; it said %q", e.Said)
	}
	return b.String() + "; " + remedy
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) peer() string {
	if e.Peer < 0 {
		return ""
	}
	return fmt.Sprintf("rank %d", e.Peer)
}

func (e *Error) result() string {
	if e.Result == 0 {
		return ""
	}
	return e.Result.String()
}

func under(word, s string) string {
	if s == "" {
		return ""
	}
	return word + " " + s
}
