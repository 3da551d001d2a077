package choice

// A Topology is how ranks lie on nodes: in blocks of Local consecutive ranks.
// Local is Ranks where hierarchy has nothing to gain: all ranks on one node, one
// rank on each, or ranks that do not lie in equal blocks.
type Topology struct{ Ranks, Local int }

// TopologyOf finds how ranks lie, given the identity of each rank's host.
func TopologyOf(hosts []string) Topology {
	n := len(hosts)
	flat := Topology{Ranks: n, Local: n}
	local := 1
	for local < n && hosts[local] == hosts[0] {
		local++
	}
	if local == 1 || n%local != 0 {
		return flat
	}
	seen := map[string]bool{}
	for b := 0; b < n; b += local {
		if seen[hosts[b]] {
			return flat
		}
		seen[hosts[b]] = true
		for i := range local {
			if hosts[b+i] != hosts[b] {
				return flat
			}
		}
	}
	return Topology{Ranks: n, Local: local}
}

// Nodes is the number of blocks.
func (t Topology) Nodes() int { return t.Ranks / t.Local }

// Blocks is the topology of n ranks in blocks of local on a node; 0, 1 or a number
// that does not divide n is all on one.
func Blocks(n, local int) Topology {
	if local > 1 && n%local == 0 {
		return Topology{Ranks: n, Local: local}
	}
	return Topology{Ranks: n, Local: n}
}
