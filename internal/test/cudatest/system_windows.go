package cudatest

import (
	"errors"

	"golang.org/x/sys/windows"
)

// pages fails: no test on Windows needs pages.
func pages(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func freePages([]byte) {}

func closeFile(fd int) error { return windows.CloseHandle(windows.Handle(fd)) }
