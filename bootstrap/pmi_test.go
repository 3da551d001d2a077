package bootstrap

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExchange speaks with a launcher that answers as Hydra does, and then with launchers that
// each refuse one request. A launcher's real store is used in package command's tests.
func TestExchange(t *testing.T) {
	id, err := randomID("10.0.0.1:4000")
	require.NoError(t, err)
	answers := []struct{ request, answer string }{
		{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
		{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7"},
		{"cmd=put kvsname=kvs_7 key=ringo-id value=" + id.String(), "cmd=put_result rc=0 msg=success"},
		{"cmd=barrier_in", "cmd=barrier_out"},
		{"cmd=get kvsname=kvs_7 key=ringo-id", "cmd=get_result rc=0 msg=success value=" + id.String()},
		{"cmd=finalize", "cmd=finalize_ack"},
	}
	for refuse := range len(answers) + 1 {
		ours, launcher := net.Pipe()
		go func() {
			defer launcher.Close()
			in := bufio.NewScanner(launcher)
			for i := 0; in.Scan(); i++ {
				if i == len(answers) || in.Text() != answers[i].request || i == refuse {
					fmt.Fprintln(launcher, "cmd=nothing rc=-1 msg=no")
					return
				}
				fmt.Fprintln(launcher, answers[i].answer)
			}
		}()
		got, err := exchange(ours, id)
		ours.Close()
		if refuse == len(answers) {
			require.NoError(t, err)
			require.Equal(t, id, got)
		} else {
			require.ErrorContains(t, err, "the launcher answers cmd=nothing rc=-1", refuse)
		}
	}
	_, err = exchange(struct {
		*strings.Reader
		*strings.Builder
	}{strings.NewReader("cmd=resp"), &strings.Builder{}}, id)
	require.ErrorContains(t, err, "EOF")
}
