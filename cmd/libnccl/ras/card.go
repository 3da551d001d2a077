package ras

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// keyBytes is the length of a process's key.
const keyBytes = 16

// OnHost is the device of a rank on host memory.
const OnHost = -1

// A Card describes a rank, and the process that answers for the rank, to the other ranks.
type Card struct {
	Key     [keyBytes]byte // secret that allows its holder to ask the process
	Host    string         // the process's address, which answers name
	Machine string         // equal for processes that see each other's process numbers and sockets
	Pid     int
	Port    int // port at Host for the job's processes on other machines; 0 if there is none
	Device  int // as the program numbers GPUs, OnHost without one
	NVML    int // as the driver's tools number them
}

// format is the format of Card.Encode. The number at its beginning is its version.
const format = "1 %s %s %s %d %d %d %d"

// Encode is the card as bytes, about 90 of them, that ParseCard reads.
func (c *Card) Encode() []byte {
	return fmt.Appendf(nil, format, base64.RawURLEncoding.EncodeToString(c.Key[:]), c.Host, c.Machine, c.Pid, c.Port,
		c.Device, c.NVML)
}

// ParseCard reads a card. Bytes that are no card are an error, such as those of a rank with RAS off.
func ParseCard(b []byte) (c Card, err error) {
	var key string
	if _, err = fmt.Sscanf(string(b), format, &key, &c.Host, &c.Machine, &c.Pid, &c.Port, &c.Device, &c.NVML); err != nil {
		return Card{}, fmt.Errorf("ras: not a card: %w", err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || len(raw) != keyBytes || c.Pid <= 0 || c.Port < 0 || c.Port > 0xffff || !isDevice(c.Device) ||
		!isDevice(c.NVML) {
		return Card{}, fmt.Errorf("ras: not a card: %.100q", b)
	}
	copy(c.Key[:], raw)
	return c, nil
}

func isDevice(n int) bool { return n >= OnHost && n < 1<<10 } // which is more than the GPUs of a machine

// process names the process. The name does not tell the key.
func (c *Card) process() string {
	sum := sha256.Sum256(append([]byte("ringo ras process "), c.Key[:]...))
	return hex.EncodeToString(sum[:8])
}

// socket is where the process listens for others of its machine.
func (c *Card) socket() string { return "@ringo-ras-" + c.process() }

// machine tells apart the machines, and the namespaces of their containers, whose processes do not see each other.
func machine() string {
	h := sha256.New()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	h.Write(boot)
	for _, space := range []string{"net", "pid"} {
		name, _ := os.Readlink("/proc/self/ns/" + space)
		h.Write([]byte(name))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// alive reports whether a process of this machine has ended, and whether it is stopped or traced.
func alive(pid int) (ended, stopped bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err), false
	}
	_, after, ok := strings.Cut(string(stat), ") ") // the name before may have anything in it
	if !ok || after == "" {
		return false, false
	}
	return after[0] == 'Z' || after[0] == 'X', after[0] == 'T' || after[0] == 't'
}
