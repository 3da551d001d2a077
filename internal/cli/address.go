package cli

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Address returns text if it can be an address to listen at or to call, host:port; either may be empty.
func Address(text string) (string, error) {
	if _, port, err := net.SplitHostPort(text); err != nil {
		return "", fmt.Errorf("want host:port, such as 127.0.0.1:8080 or :0")
	} else if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("%q is no port: want 0 to 65535", port)
	}
	return text, nil
}

// Listen listens at the address of a flag. It is a UsageError if that is none of this host.
func Listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if _, unknown := errors.AsType[*net.DNSError](err); unknown || errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, Usagef("%s: %v", flag, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return l, nil
}
