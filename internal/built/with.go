//go:build !ringo_host

package built

// GPU says whether GPUs, InfiniBand and network plugins are in the program.
const GPU = true
