package ibverbs

import "fmt"

// A Status is how work was completed.
type Status uint32

// Statuses that package verbs tells apart.
const (
	Success     Status = 0
	WRFlushErr  Status = 5
	RetryExcErr Status = 12
)

// statusNames are the sentences of ibv_wc_status_str.
var statusNames = [...]string{
	"success", "local length error", "local QP operation error", "local EE context operation error",
	"local protection error", "work request flushed", "memory window bind error", "bad response",
	"local access error", "remote invalid request", "remote access error", "remote operation error",
	"transport retry counter exceeded", "receiver-not-ready retry counter exceeded", "local RDD violation",
	"remote invalid RD request", "operation aborted by the remote end", "invalid EE context number",
	"invalid EE context state", "fatal error", "response timeout", "general error",
}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// An EventType is what happened to a device.
type EventType uint32

// Events.
const (
	EventCQErr            EventType = 0
	EventQPFatal          EventType = 1
	EventQPRequestErr     EventType = 2
	EventQPAccessErr      EventType = 3
	EventDeviceFatal      EventType = 8
	EventPortActive       EventType = 9
	EventPortErr          EventType = 10
	EventLIDChange        EventType = 11
	EventPKeyChange       EventType = 12
	EventSMChange         EventType = 13
	EventClientReregister EventType = 17
	EventGIDChange        EventType = 18
)

var eventNames = map[EventType]string{
	EventCQErr: "completion queue error", EventQPFatal: "queue pair fatal error",
	EventQPRequestErr: "queue pair request error",
	EventQPAccessErr:  "queue pair access error", EventDeviceFatal: "device failed", EventPortActive: "port is up",
	EventPortErr: "port is down", EventLIDChange: "port has another LID", EventPKeyChange: "partition table changed",
	EventSMChange: "another subnet manager", EventClientReregister: "subnet manager asks to register again",
	EventGIDChange: "GID table changed",
}

func (t EventType) String() string {
	if s, ok := eventNames[t]; ok {
		return s
	}
	return fmt.Sprintf("event %d", uint32(t))
}

// aboutPort reports whether the element of an event is a port.
func (t EventType) aboutPort() bool {
	return t >= EventPortActive && t <= EventSMChange || t == EventClientReregister || t == EventGIDChange
}
