package ibverbs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// A field is a field of C and its place in Go's structure, or an expression of C and Go's value.
type field struct {
	c string // structure.field, or an expression
	v any    // a structure of Go whose field is named, or the value of c
	g string
}

var fields = []field{
	{"offsetof(struct ibv_context, async_fd)", contextAsyncFD, ""},
	{"offsetof(struct ibv_context, abi_compat)", contextABI, ""},
	{"sizeof(struct ibv_context)", contextSize, ""},
	{"offsetof(struct verbs_context, context) - offsetof(struct verbs_context, sz)", beforeSize, ""},
	{"offsetof(struct verbs_context, context) - offsetof(struct verbs_context, query_port)", beforeQueryPort, ""},
	{"offsetof(struct ibv_context, ops.poll_cq)", contextPollCQ, ""},
	{"offsetof(struct ibv_context, ops.req_notify_cq)", contextNotifyCQ, ""},
	{"offsetof(struct ibv_context, ops.post_send)", contextPostSend, ""},
	{"offsetof(struct ibv_context, ops.post_recv)", contextPostRecv, ""},
	{"offsetof(struct ibv_qp, qp_num)", qpNum, ""},
	{"offsetof(struct ibv_mr, lkey)", mrLKey, ""},
	{"offsetof(struct ibv_mr, rkey)", mrRKey, ""},
	{"offsetof(struct ibv_comp_channel, fd)", channelFD, ""},

	{"sizeof(struct ibv_device_attr)", DeviceAttr{}, ""},
	{"ibv_device_attr.node_guid", DeviceAttr{}, "NodeGUID"},
	{"ibv_device_attr.sys_image_guid", DeviceAttr{}, "SysImageGUID"},
	{"ibv_device_attr.max_qp_wr", DeviceAttr{}, "MaxQPWR"},
	{"ibv_device_attr.max_cqe", DeviceAttr{}, "MaxCQE"},
	{"ibv_device_attr.max_pd", DeviceAttr{}, "MaxPD"},
	{"ibv_device_attr.max_pkeys", DeviceAttr{}, "MaxPKeys"},
	{"ibv_device_attr.phys_port_cnt", DeviceAttr{}, "NumPorts"},

	{"ibv_port_attr.state", PortAttr{}, "State"},
	{"ibv_port_attr.active_mtu", PortAttr{}, "ActiveMTU"},
	{"ibv_port_attr.gid_tbl_len", PortAttr{}, "GIDTableLen"},
	{"ibv_port_attr.lid", PortAttr{}, "LID"},
	{"ibv_port_attr.active_width", PortAttr{}, "ActiveWidth"},
	{"ibv_port_attr.active_speed", PortAttr{}, "ActiveSpeed"},
	{"ibv_port_attr.link_layer", PortAttr{}, "LinkLayer"},
	{"ibv_port_attr.port_cap_flags2", PortAttr{}, "CapFlags2"},
	{"ibv_port_attr.active_speed_ex", PortAttr{}, "ActiveSpeedEx"},

	{"sizeof(struct ibv_qp_init_attr)", qpInitAttr{}, ""},
	{"ibv_qp_init_attr.send_cq", qpInitAttr{}, "sendCQ"},
	{"ibv_qp_init_attr.cap", qpInitAttr{}, "cap"},
	{"ibv_qp_init_attr.qp_type", qpInitAttr{}, "kind"},
	{"ibv_qp_init_attr.sq_sig_all", qpInitAttr{}, "signalAll"},
	{"sizeof(struct ibv_qp_cap)", QPCap{}, ""},
	{"ibv_qp_cap.max_inline_data", QPCap{}, "MaxInline"},

	{"sizeof(struct ibv_ah_attr)", AHAttr{}, ""},
	{"ibv_ah_attr.grh.flow_label", AHAttr{}, "FlowLabel"},
	{"ibv_ah_attr.grh.sgid_index", AHAttr{}, "SGIDIndex"},
	{"ibv_ah_attr.grh.hop_limit", AHAttr{}, "HopLimit"},
	{"ibv_ah_attr.grh.traffic_class", AHAttr{}, "TC"},
	{"ibv_ah_attr.dlid", AHAttr{}, "DLID"},
	{"ibv_ah_attr.sl", AHAttr{}, "SL"},
	{"ibv_ah_attr.is_global", AHAttr{}, "IsGlobal"},
	{"ibv_ah_attr.port_num", AHAttr{}, "Port"},

	{"sizeof(struct ibv_qp_attr)", QPAttr{}, ""},
	{"ibv_qp_attr.path_mtu", QPAttr{}, "PathMTU"},
	{"ibv_qp_attr.rq_psn", QPAttr{}, "RQPSN"},
	{"ibv_qp_attr.sq_psn", QPAttr{}, "SQPSN"},
	{"ibv_qp_attr.dest_qp_num", QPAttr{}, "DestQPN"},
	{"ibv_qp_attr.qp_access_flags", QPAttr{}, "Access"},
	{"ibv_qp_attr.ah_attr", QPAttr{}, "AH"},
	{"ibv_qp_attr.alt_ah_attr", QPAttr{}, "AltAH"},
	{"ibv_qp_attr.pkey_index", QPAttr{}, "PKeyIndex"},
	{"ibv_qp_attr.max_rd_atomic", QPAttr{}, "MaxRdAtomic"},
	{"ibv_qp_attr.max_dest_rd_atomic", QPAttr{}, "MaxDestRdAtomic"},
	{"ibv_qp_attr.min_rnr_timer", QPAttr{}, "MinRNRTimer"},
	{"ibv_qp_attr.port_num", QPAttr{}, "Port"},
	{"ibv_qp_attr.timeout", QPAttr{}, "Timeout"},
	{"ibv_qp_attr.retry_cnt", QPAttr{}, "RetryCount"},
	{"ibv_qp_attr.rnr_retry", QPAttr{}, "RNRRetry"},
	{"ibv_qp_attr.rate_limit", QPAttr{}, "RateLimit"},

	{"sizeof(struct ibv_sge)", SGE{}, ""},
	{"ibv_sge.length", SGE{}, "Length"},
	{"ibv_sge.lkey", SGE{}, "LocalKey"},
	{"sizeof(struct ibv_send_wr)", SendWR{}, ""},
	{"ibv_send_wr.sg_list", SendWR{}, "SGList"},
	{"ibv_send_wr.num_sge", SendWR{}, "NumSGE"},
	{"ibv_send_wr.opcode", SendWR{}, "Opcode"},
	{"ibv_send_wr.send_flags", SendWR{}, "Flags"},
	{"ibv_send_wr.imm_data", SendWR{}, "Imm"},
	{"ibv_send_wr.wr.rdma.remote_addr", SendWR{}, "RemoteAddr"},
	{"ibv_send_wr.wr.rdma.rkey", SendWR{}, "RemoteKey"},
	{"sizeof(struct ibv_recv_wr)", RecvWR{}, ""},
	{"ibv_recv_wr.num_sge", RecvWR{}, "NumSGE"},

	{"sizeof(struct ibv_wc)", WC{}, ""},
	{"ibv_wc.status", WC{}, "Status"},
	{"ibv_wc.opcode", WC{}, "Opcode"},
	{"ibv_wc.vendor_err", WC{}, "VendorErr"},
	{"ibv_wc.byte_len", WC{}, "Bytes"},
	{"ibv_wc.imm_data", WC{}, "Imm"},
	{"ibv_wc.qp_num", WC{}, "QPNum"},
	{"ibv_wc.wc_flags", WC{}, "Flags"},
	{"ibv_wc.slid", WC{}, "SLID"},
	{"sizeof(struct ibv_async_event)", asyncEvent{}, ""},
	{"ibv_async_event.event_type", asyncEvent{}, "kind"},

	{"IBV_PORT_ACTIVE", PortActive, ""}, {"IBV_LINK_LAYER_UNSPECIFIED", LinkUnspecified, ""},
	{"IBV_LINK_LAYER_INFINIBAND", LinkInfiniBand, ""}, {"IBV_LINK_LAYER_ETHERNET", LinkEthernet, ""},
	{"IBV_ACCESS_LOCAL_WRITE", AccessLocalWrite, ""}, {"IBV_ACCESS_REMOTE_WRITE", AccessRemoteWrite, ""},
	{"IBV_ACCESS_REMOTE_READ", AccessRemoteRead, ""}, {"IBV_WR_RDMA_WRITE", OpRDMAWrite, ""},
	{"IBV_WR_RDMA_READ", OpRDMARead, ""},
	{"IBV_QPT_RC", qpTypeRC, ""},
	{"IBV_QPS_INIT", QPInit, ""}, {"IBV_QPS_RTR", QPRTR, ""}, {"IBV_QPS_RTS", QPRTS, ""}, {"IBV_QPS_ERR", QPErr, ""},
	{"IBV_QP_STATE", MaskState, ""}, {"IBV_QP_ACCESS_FLAGS", MaskAccess, ""}, {"IBV_QP_PKEY_INDEX", MaskPKeyIndex, ""},
	{"IBV_QP_PORT", MaskPort, ""}, {"IBV_QP_AV", MaskAV, ""}, {"IBV_QP_PATH_MTU", MaskPathMTU, ""},
	{"IBV_QP_TIMEOUT", MaskTimeout, ""}, {"IBV_QP_RETRY_CNT", MaskRetryCount, ""}, {"IBV_QP_RNR_RETRY", MaskRNRRetry, ""},
	{"IBV_QP_RQ_PSN", MaskRQPSN, ""}, {"IBV_QP_MAX_QP_RD_ATOMIC", MaskMaxRdAtomic, ""},
	{"IBV_QP_MIN_RNR_TIMER", MaskMinRNRTimer, ""}, {"IBV_QP_SQ_PSN", MaskSQPSN, ""},
	{"IBV_QP_MAX_DEST_RD_ATOMIC", MaskMaxDestRdAtomic, ""}, {"IBV_QP_DEST_QPN", MaskDestQPN, ""},
	{"IBV_WR_RDMA_WRITE_WITH_IMM", OpRDMAWriteWithImm, ""}, {"IBV_SEND_SIGNALED", SendSignaled, ""},
	{"IBV_SEND_INLINE", SendInline, ""},
	{"IBV_WC_RECV_RDMA_WITH_IMM", WCRecvRDMAWithImm, ""},
	{"IBV_WC_SUCCESS", int(Success), ""}, {"IBV_WC_WR_FLUSH_ERR", int(WRFlushErr), ""},
	{"IBV_WC_RETRY_EXC_ERR", int(RetryExcErr), ""},
	{"IBV_EVENT_CQ_ERR", int(EventCQErr), ""}, {"IBV_EVENT_QP_FATAL", int(EventQPFatal), ""},
	{"IBV_EVENT_QP_REQ_ERR", int(EventQPRequestErr), ""}, {"IBV_EVENT_QP_ACCESS_ERR", int(EventQPAccessErr), ""},
	{"IBV_EVENT_DEVICE_FATAL", int(EventDeviceFatal), ""}, {"IBV_EVENT_PORT_ACTIVE", int(EventPortActive), ""},
	{"IBV_EVENT_PORT_ERR", int(EventPortErr), ""}, {"IBV_EVENT_LID_CHANGE", int(EventLIDChange), ""},
	{"IBV_EVENT_PKEY_CHANGE", int(EventPKeyChange), ""}, {"IBV_EVENT_SM_CHANGE", int(EventSMChange), ""},
	{"IBV_EVENT_CLIENT_REREGISTER", int(EventClientReregister), ""}, {"IBV_EVENT_GID_CHANGE", int(EventGIDChange), ""},
}

// want is the number that C must print.
func (f field) want(t *testing.T) int {
	if n, ok := f.v.(int); ok {
		return n
	}
	typ := reflect.TypeOf(f.v)
	if f.g == "" {
		return int(typ.Size())
	}
	s, ok := typ.FieldByName(f.g)
	require.True(t, ok, "%v has no field %s", typ, f.g)
	return int(s.Offset)
}

// expression is the number in C.
func (f field) expression() string {
	if typ, name, ok := strings.Cut(f.c, "."); ok && !strings.Contains(f.c, "(") {
		return fmt.Sprintf("offsetof(struct %s, %s)", typ, name)
	}
	return f.c
}

// Structures and constants are those of the header.
func TestHeader(t *testing.T) {
	gcc := need.Tool(t, "gcc")
	header, err := os.ReadFile("/usr/include/infiniband/verbs.h")
	if err != nil {
		need.Missing(t, "verbs", "apt-get install libibverbs-dev: "+err.Error())
	}
	if !strings.Contains(string(header), "active_speed_ex") { // an older header
		fields = slices.DeleteFunc(fields, func(f field) bool { return f.g == "ActiveSpeedEx" })
	}
	var src strings.Builder
	src.WriteString("#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\n")
	// The compiler compares this with the header: Go calls only this function with 64-bit numbers.
	src.WriteString("struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);\nint " +
		"main(void) {\n")
	for _, f := range fields {
		fmt.Fprintf(&src, "printf(\"%%ld\\n\", (long)(%s));\n", f.expression())
	}
	src.WriteString("return 0; }\n")
	dir := t.TempDir()
	file, program := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	require.NoError(t, os.WriteFile(file, []byte(src.String()), 0o600))
	out, err := exec.Command(gcc, "-o", program, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).Output()
	require.NoError(t, err)
	lines := strings.Fields(string(out))
	require.Len(t, lines, len(fields))
	for i, f := range fields {
		require.Equal(t, fmt.Sprint(f.want(t)), lines[i], "%s (%T %s)", f.c, f.v, f.g)
	}
}
