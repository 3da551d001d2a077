package internal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/setting"
)

// A switch is on for a yes and off for a no. Anything else is an error for a variable of ours, a line of the log for
// NCCL's.
func TestSwitch(t *testing.T) {
	for _, test := range []struct {
		name, value string
		on          bool
		err, odd    string
	}{
		{"RINGO_X", "on", true, "", ""},
		{"RINGO_X", "0", false, "", ""},
		{"RINGO_X", "perhaps", false, `RINGO_X="perhaps": want `, ""},
		{"NCCL_X", "2", true, "", ""},
		{"NCCL_X", "0", false, "", ""},
		{"NCCL_X", "perhaps", false, "", `NCCL_X="perhaps": want 0 or 1; it has no effect`},
	} {
		var e setting.Environment
		var on []string
		row := setting.Switch("X", func(name string) { on = append(on, name) }, "RINGO_X", "NCCL_X")
		require.Equal(t, "X", row.Name)
		require.False(t, row.Said)
		require.Equal(t, []string{"RINGO_X", "NCCL_X"}, row.Names)
		row.Read(&e, test.name, test.value)
		require.Equal(t, test.on, len(on) == 1 && on[0] == test.name, test)
		if test.err == "" {
			require.NoError(t, e.Err, test)
		} else {
			require.ErrorContains(t, e.Err, test.err)
		}
		if test.odd == "" {
			require.Empty(t, e.Odd, test)
		} else {
			require.Equal(t, []string{test.odd}, e.Odd)
		}
	}
}

// A number of ours may end with a unit; one of NCCL's is at most so much.
func TestNumber(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        int
		err, odd    string
	}{
		{"RINGO_X", "64K", 64 << 10, "", ""},
		{"RINGO_X", "200", 200, "", ""},
		{"RINGO_X", "many", -1, `RINGO_X="many": want a number`, ""},
		{"NCCL_X", "99", 99, "", ""},
		{"NCCL_X", "100", 100, "", ""},
		{"NCCL_X", "101", 100, "", `NCCL_X="101" is taken as 100, the most`},
		{"NCCL_X", "many", -1, "", `NCCL_X="many": want a number; it has no effect`},
	} {
		var e setting.Environment
		require.Equal(t, test.want, e.Number(test.name, test.value, 100), test)
		if test.err == "" {
			require.NoError(t, e.Err, test)
		} else {
			require.EqualError(t, e.Err, test.err)
		}
		if test.odd == "" {
			require.Empty(t, e.Odd, test)
		} else {
			require.Equal(t, []string{test.odd}, e.Odd)
		}
	}
}
