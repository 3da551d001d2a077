package cudatest

import (
	"errors"

	"golang.org/x/sys/windows"
)

// pages is never called: these tests have no driver on Windows.
func pages(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func freePages([]byte) {}

func closeFile(fd int) error { return windows.CloseHandle(windows.Handle(fd)) }
