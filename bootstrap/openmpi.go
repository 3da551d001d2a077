package bootstrap

import (
	"errors"
	"strings"
)

// mpirunHost is the address of the machine of mpirun, where rank 0 usually runs too: the first
// address in mpirun's URI, IPv4 before IPv6. It is empty without a URI.
func (e env) mpirunHost(rank int) (string, error) {
	uri := e.get("OMPI_MCA_orte_hnp_uri")
	if daemon := e.get("OMPI_MCA_orte_local_daemon_uri"); rank == 0 && daemon != "" && daemon != uri {
		return "", errors.New("rank 0 is not on the machine of mpirun, where the others look for it: set RINGO_COMM_ID to " +
			"host:port, or MASTER_ADDR to a host, of rank 0, the same for every rank (mpirun -x MASTER_ADDR=HOST)")
	}
	return uriHost(uri), nil
}

// uriHost is 10.0.0.1 of "17.0;tcp://10.0.0.1,10.1.0.1:4000;tcp6://[fe80::1]:4001".
func uriHost(uri string) string {
	for _, scheme := range []string{"tcp://", "tcp4://", "tcp6://"} {
		_, hosts, found := strings.Cut(uri, ";"+scheme)
		if !found {
			continue
		}
		hosts, _, _ = strings.Cut(hosts, ";")
		if inside, bracketed := strings.CutPrefix(hosts, "["); bracketed {
			hosts, _, _ = strings.Cut(inside, "]")
		} else {
			hosts, _, _ = strings.Cut(hosts, ":")
		}
		host, _, _ := strings.Cut(hosts, ",")
		return host
	}
	return ""
}
