// Package rdma is libibverbs for tests: a Fabric is a simulated one, a Mapper the system's, whose devices take files
// as memory of GPUs.
package rdma
