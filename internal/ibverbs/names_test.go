package ibverbs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Statuses, events and GIDs have the names that users look up.
func TestNames(t *testing.T) {
	for want, got := range map[string]interface{ String() string }{
		"success":                          Success,
		"work request flushed":             WRFlushErr,
		"transport retry counter exceeded": RetryExcErr,
		"general error":                    Status(21),
		"status 22":                        Status(22),
		"device failed":                    EventDeviceFatal,
		"port is down":                     EventPortErr,
		"event 4":                          EventType(4),
		"IB":                               GIDInfiniBand,
		"RoCE v1":                          GIDRoCE1,
		"RoCE v2":                          GIDRoCE2,
	} {
		require.Equal(t, want, got.String())
	}
	about := map[EventType]bool{
		EventPortActive: true, EventPortErr: true, EventLIDChange: true, EventPKeyChange: true, EventSMChange: true,
		EventClientReregister: true, EventGIDChange: true,
	}
	for e := range EventType(25) {
		require.Equal(t, about[e], e.aboutPort(), e)
	}
}
