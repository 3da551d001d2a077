package listen

import "golang.org/x/sys/windows"

// errRefused is the system's error of a dial where nobody listens.
const errRefused = windows.WSAECONNREFUSED
