// Clusters of blocks: what launches and functions say of their size, as an H100 with driver 13.0 takes it.

package cudaemu

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// Attributes of functions about clusters.
const (
	clusterMustBeSet   cuda.FunctionAttribute = 10
	clusterWidth       cuda.FunctionAttribute = 11
	clusterDepth       cuda.FunctionAttribute = 13
	clusterNonPortable cuda.FunctionAttribute = 14
	clusterPolicy      cuda.FunctionAttribute = 15 // of scheduling, and without effect
)

// clusterSettings are what a program has set of a function.
type clusterSettings struct {
	size        [3]int // of its clusters, where neither kernel nor launch says one
	nonPortable bool   // larger clusters than all GPUs have may be launched
	policy      int
}

// Clusters have at most so many blocks: on all GPUs of capability 9.0 and later, and on some of them.
const portableCluster, largestCluster = 8, 16

func (f *function) clusterAttribute(a cuda.FunctionAttribute) (v int, ok bool) {
	switch k := f.kernel.Func; {
	case a == clusterMustBeSet:
		return boolInt(k.Explicit), true
	case a >= clusterWidth && a <= clusterDepth && k.ReqCluster != ptx.Dim{}:
		return k.ReqCluster[a-clusterWidth], true
	case a >= clusterWidth && a <= clusterDepth:
		return f.size[a-clusterWidth], true
	case a == clusterNonPortable:
		return boolInt(f.nonPortable), true
	case a == clusterPolicy:
		return f.policy, true
	}
	return 0, false
}

// setClusterAttribute reports whether the attribute is one that it has set.
func (f *function) setClusterAttribute(a cuda.FunctionAttribute, v int) bool {
	switch {
	case a >= clusterWidth && a <= clusterDepth:
		f.size[a-clusterWidth] = max(v, 0)
	case a == clusterNonPortable:
		f.nonPortable = v != 0
	case a == clusterPolicy:
		f.policy = v
	default:
		return false
	}
	return true
}

func extent(d [3]int) int { return d[0] * d[1] * d[2] }

// mostBlocks is how many blocks a cluster of the function may have.
func (f *function) mostBlocks() int {
	if f.nonPortable {
		return largestCluster
	}
	return portableCluster
}

// cluster is how many blocks the clusters of a launch have in each dimension, zeros where nothing says.
func (c *call) cluster(f *function, asked cuda.Dim3, grid [3]int) [3]int {
	k, none := f.kernel.Func, [3]int{}
	refuse := func(wrong bool, detail string, args ...any) {
		c.refuse(wrong, cuda.ErrInvalidClusterSize, "kernel "+f.kernel.Name+": "+detail, args...)
	}
	n := [3]int{int(asked.X), int(asked.Y), int(asked.Z)}
	switch {
	case k.ReqCluster != ptx.Dim{}:
		own := f.kernel.ClusterOf(none)
		refuse(n != none && n != own, "clusters of %v blocks, it was compiled for %v", n, own)
		n = own
	case n == none:
		n = f.size
	}
	if n == none {
		refuse(k.Explicit, "the launch has to say how many blocks a cluster has")
		return n
	}
	most := f.mostBlocks()
	if k.MaxCluster > 0 {
		most = min(most, k.MaxCluster)
	}
	c.refuse(f.mod.ctx.dev.Major < 9, cuda.ErrNotSupported, "kernel %s: clusters need a GPU of capability 9.0",
		f.kernel.Name)
	refuse(extent(n) < 1 || extent(n) > most, "clusters of %v blocks, at most %d are allowed", n, most)
	for i := range n {
		refuse(grid[i]%n[i] != 0, "a grid of %v blocks in clusters of %v: extents have to be multiples", grid, n)
	}
	return n
}

// OccupancyMaxActiveClusters is how many clusters of a launch the device holds at once. All multiprocessors can run
// blocks of one cluster here, so more may fit than on hardware.
func (m *Machine) OccupancyMaxActiveClusters(h cuda.Function, l *cuda.Launch, cluster cuda.Dim3) (int, error) {
	return of(m, "cuOccupancyMaxActiveClusters", (*call).function, h, func(c *call, f *function) int {
		n := c.cluster(f, cluster, size(l.Grid))
		if n == [3]int{} {
			return 0
		}
		return c.blocksAtOnce(f, l) / extent(n)
	})
}

// OccupancyMaxPotentialClusterSize is how many blocks a cluster of a launch can have.
func (m *Machine) OccupancyMaxPotentialClusterSize(h cuda.Function, l *cuda.Launch, cluster cuda.Dim3) (int, error) {
	return of(m, "cuOccupancyMaxPotentialClusterSize", (*call).function, h, func(c *call, f *function) int {
		c.cluster(f, cluster, size(l.Grid))
		most := f.mostBlocks()
		if f.mod.ctx.dev.Major < 9 {
			most = 1
		}
		return min(most, c.blocksAtOnce(f, l))
	})
}

// blocksAtOnce is how many blocks of a launch the device holds.
func (c *call) blocksAtOnce(f *function, l *cuda.Launch) int {
	d := f.mod.ctx.dev
	if threads := extent(size(l.Block)); threads <= d.Shape.ThreadsPerBlock && l.Shared <= f.maxDynamic() {
		return c.world.Fits(d.ordinal, f.kernel, threads, l.Shared) * d.Shape.SMs
	}
	return 0
}
