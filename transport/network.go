package transport

import (
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/mem"
)

// A Network is a kind of transport that connects hosts: a network plugin, InfiniBand, sockets.
// It describes the kind to package paths before a communicator uses one; core/paths/networks.go
// lists all kinds.
type Network struct {
	Name     string // as in RINGO_NET, in lower case
	Encrypts bool   // data go over TLS if NetworkOptions ask for it
	Given    bool   // the data go over NetworkOptions.Sockets if there are any
	// Probe looks for what the network needs on this machine, and loads what it needs to look.
	// An error names the library or the device that is missing. Found is the same until the
	// process ends.
	Probe func(NetworkOptions) (Found, error)
	// Open makes the transport of one rank, whose Name is the network's. It costs nothing
	// until Listen.
	Open func(Config, NetworkOptions) Transport
}

// Found is what Probe finds on one machine.
type Found struct {
	// Kind tells apart networks of one name that cannot be connected: InfiniBand and RoCE, two
	// plugins. The ranks use a network if all of them find the same kind.
	Kind    string
	Devices []NetworkDevice
	// Used are the names of the devices that carry the connections which this rank dials; nil if any
	// device may.
	Used []string
}

// A NetworkDevice is a card, a port of it, or an interface.
type NetworkDevice struct {
	Name   string `json:"name"`
	Mbps   int    `json:"mbps,omitempty"`   // 0 if not known
	Detail string `json:"detail,omitempty"` // for people to read
}

// NetworkOptions are what a user has set for networks. Each kind reads its own.
type NetworkOptions struct {
	// Of sockets; see socket.Options.
	Interface       string
	Family, Streams int
	SocketNetwork   string
	Local           bool           // all ranks are on this host
	TLS             *secure.Config // nil for connections in clear
	Sockets         *Sockets       // the program's own, nil for none

	HostMbps int // of a host's devices together, in place of the speeds they report; 0 if not set

	// Rail is the number of this rank among the ranks of its host. Hierarchical algorithms have
	// ranks of the same number send to each other, so where a host has several cards, card Rail mod
	// the number of cards keeps each column on cards of its own.
	Rail  int
	Ranks int // of this host
	// Near is the distance of a card from the rank's GPU; less is nearer. The nearest cards are used, and
	// Rail decides among them. nil means that all are equally near.
	Near func(card string) int

	IB     IBOptions
	Plugin PluginOptions
}

// IBOptions are what a user has set for InfiniBand.
type IBOptions struct {
	Disabled string // why it is not to be used, "" if it may
	HCA      string // which cards and ports, as NCCL_IB_HCA says it; "" for all

	// See verbs.Options; 0 and nil are its defaults.
	GIDIndex                   *int
	Timeout, Retries           int
	TrafficClass, ServiceLevel int
	PKeyIndex                  int
}

// PluginOptions choose a plugin.
type PluginOptions struct {
	Library string // an entry of NCCL_NET_PLUGIN: a path, or x for libnccl-net-x.so; "" for libnccl-net.so
	Named   string // what the plugin must call itself, whatever the case; "" for any name
}

// Registrar is a power of some Transports: they move registered memory without copying it. It
// is for memory that lives as long as the transport, such as a bridge's queues.
type Registrar interface {
	// Register makes memory known, until release is called or the transport is closed. Memory of
	// a GPU is registered by DMABuf where the network's devices take that. An error says why this
	// network cannot use the memory.
	Register(m Memory) (release func() error, err error)
}

// Memory is memory for a Registrar.
type Memory struct {
	mem.Region
	// DMABuf exports the Region's pages for other devices: a file, which the caller closes, and the
	// offset of the Region in it. It is nil for host memory, and where driver or GPU cannot export.
	DMABuf func() (fd int, offset uint64, err error)
	// Ordered says that a GPU's kernels see the data that other devices write to its memory no later
	// than the word that the data have come: CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING is
	// CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER (100) at least. Without it, Next of a placed
	// connection first reads some of a slot back through the device that wrote it: a read over
	// PCIe pushes earlier writes along.
	Ordered bool
}

// Placer is a power of some Registrars: connections whose slots lie in memory of the caller. slots is
// part of registered memory and holds Slots times SlotBytes (Limits); slot n is number n mod Slots.
// Both ends of a connection are placed, or neither. Connections from a peer are accepted in the order
// in which it dials them, one after another; DialPlaced may wait until the peer calls AcceptPlaced.
//
// One goroutine may serve many placed connections: as long as it uses only the slots that Free and
// Arrived count, no method waits. Both also make the connection progress. While a link fails Publish
// may wait, some seconds at most.
type Placer interface {
	Registrar
	DialPlaced(peer Info, addr []byte, slots mem.Region) (PlacedSendConn, error)
	AcceptPlaced(peer Info, slots mem.Region) (PlacedRecvConn, error)
}

// A PlacedSendConn is a SendConn with slots in the caller's memory. Reserve returns the slot's memory,
// which the caller may have filled before. The caller fills only slots that Free counts: the device
// reads such a slot no more, and the receiver has released it. When the connection has ended, Free
// is Slots, and Reserve or Publish returns the reason.
type PlacedSendConn interface {
	SendConn
	FreeSlots
}

// A PlacedRecvConn is a RecvConn with slots in the caller's memory. Next returns the slot's memory, and
// may give all Slots before the first is released; Release gives back the oldest one. Kernels that hear
// of a slot after Next has returned it see its data.
type PlacedRecvConn interface {
	RecvConn
	// Arrived is how many slots Next gives now without waiting. Each call counts the slots that have
	// come since, also without a call of Next. When the connection has ended, Arrived is more than 0,
	// and Next returns the reason.
	Arrived() int
}
