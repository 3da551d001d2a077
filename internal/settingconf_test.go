package internal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/setting"
)

// pairs are the lines that Conf takes from a text.
func pairs(text string) (list []string) {
	for name, value := range setting.Conf(text) {
		list = append(list, name+"="+value)
	}
	return list
}

func TestConf(t *testing.T) {
	require.Equal(t, []string{"A=1", " B = two # words ", "A=3", "EMPTY=", "OF_DOS=x", "EQUAL=a=b", "LAST=line"},
		pairs("# comment\n#C=1\nA=1\n B = two # words \n\nno value\n=nameless\nA=3\nEMPTY=\nOF_DOS=x\r\nEQUAL=a=b\nLAST=line"))
	for range setting.Conf("A=1\nB=2") {
		break
	}
}

func FuzzConf(f *testing.F) {
	f.Add("# comment\nA=1\n B = two\n\nA=3\r\n=x\nlast")
	f.Add("NCCL_SOCKET_IFNAME=^lo,docker0\nRINGO_TLS=1")
	f.Fuzz(func(t *testing.T, text string) {
		list := pairs(text)
		for _, pair := range list {
			name, _, _ := strings.Cut(pair, "=")
			require.NotEmpty(t, name)
			require.NotContains(t, name, "\n")
			require.NotEqual(t, "#", name[:1])
		}
		require.Equal(t, list, pairs(strings.Join(list, "\r\n")+"\r\n"), "what is read, written anew, reads the same")
	})
}
