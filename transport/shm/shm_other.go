//go:build !linux

package shm

import (
	"errors"
	"runtime"

	"github.com/ringo-go/ringo/transport"
)

// Transport takes the place of the shared-memory transport, which only Linux has.
type Transport struct{}

// New makes a transport whose Listen fails.
func New(transport.Config, Options) *Transport { return &Transport{} }

var errNotHere = errors.New("shm: only on linux, and this is " + runtime.GOOS + "; use sockets")

// Listen returns the error that there is no shm here.
func (t *Transport) Listen() ([]byte, error) { return nil, errNotHere }

// Dial returns the error that there is no shm here.
func (t *Transport) Dial(transport.Info, []byte) (transport.SendConn, error) { return nil, errNotHere }

// Accept returns the error that there is no shm here.
func (t *Transport) Accept(transport.Info) (transport.RecvConn, error) { return nil, errNotHere }

// Close has nothing to do.
func (t *Transport) Close() error { return nil }
