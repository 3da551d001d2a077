package ibverbs

// The structures have the layout of <infiniband/verbs.h>, which header_test.go compares
// with them.

// A GID is the address of a port.
type GID [16]byte

// A GIDType says what packets to a GID look like.
type GIDType uint8

const (
	GIDInfiniBand GIDType = iota
	GIDRoCE1              // directly on Ethernet
	GIDRoCE2              // on UDP
)

var gidTypeNames = [...]string{"IB", "RoCE v1", "RoCE v2"}

func (t GIDType) String() string { return gidTypeNames[t] }

// DeviceAttr is ibv_device_attr.
type DeviceAttr struct {
	FirmwareVersion         [64]byte
	NodeGUID, SysImageGUID  uint64
	MaxMRSize, PageSizeCap  uint64
	VendorID, VendorPartID  uint32
	HWVersion               uint32
	MaxQP, MaxQPWR          int32
	CapFlags                uint32
	MaxSGE, MaxSGERd        int32
	MaxCQ, MaxCQE           int32
	MaxMR, MaxPD            int32
	_                       [20]int32 // of atomics, datagrams and shared queues
	MaxPKeys                uint16
	LocalAckDelay, NumPorts uint8
}

// PortAttr is ibv_port_attr.
type PortAttr struct {
	State               uint32
	MaxMTU, ActiveMTU   uint32
	GIDTableLen         int32
	CapFlags, MaxMsg    uint32
	BadPKey, QKeyViol   uint32
	PKeyTableLen        uint16
	LID, SMLID          uint16
	LMC, MaxVL, SMSL    uint8
	SubnetTimeout, Init uint8
	ActiveWidth         uint8
	ActiveSpeed         uint8 // of a lane, at most 128
	PhysState           uint8
	LinkLayer           uint8
	Flags               uint8
	CapFlags2           uint16
	ActiveSpeedEx       uint32 // 0 if ActiveSpeed has the speed, or the library is older than this field
}

// A state of ports, and their link layers.
const (
	PortActive = 4

	LinkUnspecified = 0 // by an old library: InfiniBand
	LinkInfiniBand  = 1
	LinkEthernet    = 2
)

// Access to memory.
const (
	AccessLocalWrite  = 1
	AccessRemoteWrite = 2
	AccessRemoteRead  = 4
)

// QPCap is ibv_qp_cap.
type QPCap struct {
	MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInline uint32
}

// qpInitAttr is ibv_qp_init_attr.
type qpInitAttr struct {
	context, sendCQ, recvCQ, srq uintptr
	cap                          QPCap
	kind                         uint32
	signalAll                    int32
}

const qpTypeRC = 2

// AHAttr is ibv_ah_attr: the way to a port.
type AHAttr struct {
	DGID                    GID
	FlowLabel               uint32
	SGIDIndex, HopLimit, TC uint8
	_                       uint8
	DLID                    uint16
	SL, SrcPathBits         uint8
	StaticRate, IsGlobal    uint8
	Port                    uint8
	_                       uint8
}

// QPAttr is ibv_qp_attr.
type QPAttr struct {
	State, CurState              uint32
	PathMTU, PathMigState        uint32
	QKey, RQPSN, SQPSN, DestQPN  uint32
	Access                       uint32
	Cap                          QPCap
	AH, AltAH                    AHAttr
	PKeyIndex, AltPKeyIndex      uint16
	SQDNotify, SQDraining        uint8
	MaxRdAtomic, MaxDestRdAtomic uint8
	MinRNRTimer, Port, Timeout   uint8
	RetryCount, RNRRetry         uint8
	AltPort, AltTimeout          uint8
	_                            uint8
	RateLimit                    uint32
	_                            uint32
}

// States of a queue pair.
const (
	QPInit = 1
	QPRTR  = 2
	QPRTS  = 3
	QPErr  = 6
)

// Masks of the attributes that ModifyQP changes.
const (
	MaskState           = 1 << 0
	MaskAccess          = 1 << 3
	MaskPKeyIndex       = 1 << 4
	MaskPort            = 1 << 5
	MaskAV              = 1 << 7
	MaskPathMTU         = 1 << 8
	MaskTimeout         = 1 << 9
	MaskRetryCount      = 1 << 10
	MaskRNRRetry        = 1 << 11
	MaskRQPSN           = 1 << 12
	MaskMaxRdAtomic     = 1 << 13
	MaskMinRNRTimer     = 1 << 15
	MaskSQPSN           = 1 << 16
	MaskMaxDestRdAtomic = 1 << 17
	MaskDestQPN         = 1 << 20
)

// An SGE is ibv_sge: memory that is sent.
type SGE struct {
	Addr     uint64
	Length   uint32
	LocalKey uint32
}

// SendWR is ibv_send_wr, as it is for RDMA.
type SendWR struct {
	ID         uint64
	Next       uintptr
	SGList     uintptr
	NumSGE     int32
	Opcode     uint32
	Flags      uint32
	Imm        uint32 // in the order of the bytes that both ends write it in
	RemoteAddr uint64
	RemoteKey  uint32
	_          [76]byte
}

// Operations and flags of a SendWR.
const (
	OpRDMAWrite        = 0
	OpRDMAWriteWithImm = 1
	OpRDMARead         = 4

	SendSignaled = 1 << 1
	SendInline   = 1 << 3
)

// RecvWR is ibv_recv_wr.
type RecvWR struct {
	ID     uint64
	Next   uintptr
	SGList uintptr
	NumSGE int32
	_      int32
}

// WC is ibv_wc: work that is completed.
type WC struct {
	ID        uint64
	Status    Status
	Opcode    uint32
	VendorErr uint32
	Bytes     uint32
	Imm       uint32
	QPNum     uint32
	SrcQP     uint32
	Flags     uint32
	PKeyIndex uint16
	SLID      uint16
	SL, DLID  uint8
	_         [2]byte
}

// WCRecvRDMAWithImm is the opcode of a write by the peer that came with an immediate.
const WCRecvRDMAWithImm = 129

// asyncEvent is ibv_async_event.
type asyncEvent struct {
	element uint64 // a port's number, or an address
	kind    EventType
	_       uint32
}

// An Event is something that happened to a device, or to a port of it.
type Event struct {
	Type EventType
	Port int // 0: it is not about a port
}
