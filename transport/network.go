package transport

import (
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/mem"
)

// A Network is a kind of transport that connects hosts: a network plugin, InfiniBand, sockets.
// It is what package paths knows of it before a communicator uses it; core/paths/networks.go has
// the list of all.
type Network struct {
	Name     string // as in RINGO_NET, in lower case
	Encrypts bool   // data go over TLS if NetworkOptions ask for it
	Given    bool   // it goes over NetworkOptions.Sockets if there are any
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
	// Kind tells apart what has one name and cannot be connected: InfiniBand and RoCE, two
	// plugins. The ranks use a network if all of them find the same kind.
	Kind    string
	Devices []NetworkDevice
	// Used are the names of the devices over which connections go that this rank dials, nil if any may
	// be.
	Used []string
}

// A NetworkDevice is a card, a port of it, or an interface.
type NetworkDevice struct {
	Name   string `json:"name"`
	Mbps   int    `json:"mbps,omitempty"`   // 0 if not known
	Detail string `json:"detail,omitempty"` // what else there is to say
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

	HostMbps int // of a host's devices together, before what they say; 0 if not set

	// Rail is which of the ranks of its host this one is. Hierarchical algorithms have ranks of
	// the same number send to each other, so where a host has several cards, card Rail mod the
	// number of cards keeps each column on cards of its own.
	Rail  int
	Ranks int // of this host
	// Near is how far a card is from the rank's GPU: the nearer the less. It goes before Rail. nil is the
	// same for all.
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

// PluginOptions say which plugin is meant.
type PluginOptions struct {
	Library string // an entry of NCCL_NET_PLUGIN: a path, or x for libnccl-net-x.so; "" for libnccl-net.so
	Named   string // what the plugin must call itself, whatever the case; "" for any name
}

// Registrar is a power of some Transports: memory that they know they move without copying
// it. It is for memory that lives as long as the transport, such as a bridge's queues.
type Registrar interface {
	// Register makes memory known, until release is called or the transport is closed. Memory of
	// a GPU is registered by DMABuf where the network's devices take that. An error says why this
	// network cannot use the memory.
	Register(m Memory) (release func() error, err error)
}

// Memory is what a Registrar is to know.
type Memory struct {
	mem.Region
	// DMABuf exports the Region's pages for other devices: a file, which the caller closes, and
	// where in it the Region begins. It is nil for host memory, and where driver or GPU cannot.
	DMABuf func() (fd int, offset uint64, err error)
	// Ordered says that a GPU's kernels see what other devices write to its memory before the word
	// that it has come: its driver's CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING is
	// CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER (100) at least. Where it is not, Next of a placed
	// connection reads some of a slot back first, through the device that wrote it: a read over
	// PCIe pushes the writes before it along.
	Ordered bool
}

// Placer is a power of some Registrars: connections whose slots lie in memory of the caller. Slot n
// is the SlotBytes of Limits at n mod Slots in slots, which lie in memory that was registered before.
// Both ends of a connection are placed, or neither. Connections from a peer are accepted in the order
// in which it dials them, one after another; DialPlaced may wait until the peer calls AcceptPlaced.
//
// One goroutine may have many placed connections and none of their methods waits, if it looks first
// at what Free and Arrived say. These make the connection go on, too. While a link fails Publish may
// wait, some seconds at most.
type Placer interface {
	Registrar
	DialPlaced(peer Info, addr []byte, slots mem.Region) (PlacedSendConn, error)
	AcceptPlaced(peer Info, slots mem.Region) (PlacedRecvConn, error)
}

// A PlacedSendConn is a SendConn with slots in the caller's memory. Reserve returns the slot's memory,
// which the caller may have filled before. The caller fills only slots that Free counts as free:
// those that the device reads no more and the receiver has released, all of them in time. When the
// connection has ended, Free is Slots, and Reserve or Publish says why.
type PlacedSendConn interface {
	SendConn
	FreeSlots
}

// A PlacedRecvConn is a RecvConn with slots in the caller's memory. Next returns the slot's memory, and
// may give all Slots before the first is released; Release gives back the oldest one. Whatever Next
// has returned is seen by kernels that are told of it after that.
type PlacedRecvConn interface {
	RecvConn
	// Arrived is how many slots Next gives now without waiting. Whoever asks again sees more when more
	// have come, also without a call of Next. When the connection has ended, it is more than 0, and
	// Next says why.
	Arrived() int
}
