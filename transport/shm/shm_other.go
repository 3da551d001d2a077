//go:build !linux

package shm

import (
	"errors"
	"runtime"

	"github.com/ringo-go/ringo/transport"
)

// Transport is the shared-memory transport of one rank; there is none here.
type Transport struct{}

// New makes a transport whose Listen fails.
func New(transport.Config, Options) *Transport { return &Transport{} }

var errNotHere = errors.New("shm: only on linux, and this is " + runtime.GOOS + "; use sockets")

// Listen says that there is no shm here.
func (t *Transport) Listen() ([]byte, error) { return nil, errNotHere }

// Dial says that there is no shm here.
func (t *Transport) Dial(transport.Info, []byte) (transport.SendConn, error) { return nil, errNotHere }

// Accept says that there is no shm here.
func (t *Transport) Accept(transport.Info) (transport.RecvConn, error) { return nil, errNotHere }

// Close has nothing to do.
func (t *Transport) Close() error { return nil }
