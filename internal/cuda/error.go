package cuda

import "fmt"

// A Result is a CUresult. It is an error, so that errors.Is(err, ErrOutOfMemory) works.
type Result int32

const (
	ErrInvalidValue                Result = 1
	ErrOutOfMemory                 Result = 2
	ErrNotInitialized              Result = 3
	ErrDeinitialized               Result = 4
	ErrStubLibrary                 Result = 34
	ErrCallRequiresNewerDriver     Result = 36
	ErrDeviceUnavailable           Result = 46
	ErrNoDevice                    Result = 100
	ErrInvalidDevice               Result = 101
	ErrDeviceNotLicensed           Result = 102
	ErrInvalidImage                Result = 200
	ErrInvalidContext              Result = 201
	ErrMapFailed                   Result = 205
	ErrUnmapFailed                 Result = 206
	ErrAlreadyMapped               Result = 208
	ErrNoBinaryForGPU              Result = 209
	ErrNotMapped                   Result = 211
	ErrECCUncorrectable            Result = 214
	ErrUnsupportedLimit            Result = 215
	ErrContextAlreadyInUse         Result = 216
	ErrPeerAccessUnsupported       Result = 217
	ErrInvalidPTX                  Result = 218
	ErrNvlinkUncorrectable         Result = 220
	ErrJITCompilerNotFound         Result = 221
	ErrUnsupportedPTXVersion       Result = 222
	ErrJITCompilationDisabled      Result = 223
	ErrContained                   Result = 226
	ErrInvalidSource               Result = 300
	ErrFileNotFound                Result = 301
	ErrSharedObjectSymbolNotFound  Result = 302
	ErrSharedObjectInitFailed      Result = 303
	ErrOperatingSystem             Result = 304
	ErrInvalidHandle               Result = 400
	ErrIllegalState                Result = 401
	ErrNotFound                    Result = 500
	ErrNotReady                    Result = 600
	ErrIllegalAddress              Result = 700
	ErrLaunchOutOfResources        Result = 701
	ErrLaunchTimeout               Result = 702
	ErrPeerAccessAlreadyEnabled    Result = 704
	ErrPeerAccessNotEnabled        Result = 705
	ErrPrimaryContextActive        Result = 708
	ErrContextIsDestroyed          Result = 709
	ErrAssert                      Result = 710
	ErrTooManyPeers                Result = 711
	ErrHostMemoryAlreadyRegistered Result = 712
	ErrHostMemoryNotRegistered     Result = 713
	ErrHardwareStackError          Result = 714
	ErrIllegalInstruction          Result = 715
	ErrMisalignedAddress           Result = 716
	ErrInvalidAddressSpace         Result = 717
	ErrInvalidPC                   Result = 718
	ErrLaunchFailed                Result = 719
	ErrCooperativeLaunchTooLarge   Result = 720
	ErrNotPermitted                Result = 800
	ErrNotSupported                Result = 801
	ErrSystemNotReady              Result = 802
	ErrSystemDriverMismatch        Result = 803
	ErrCompatNotSupportedOnDevice  Result = 804
	ErrMPSConnectionFailed         Result = 805
	ErrMPSRPCFailure               Result = 806
	ErrMPSServerNotReady           Result = 807
	ErrMPSMaxClientsReached        Result = 808
	ErrMPSMaxConnectionsReached    Result = 809
	ErrMPSClientTerminated         Result = 810
	ErrStreamCaptureUnsupported    Result = 900
	ErrStreamCaptureInvalidated    Result = 901
	ErrStreamCaptureMerge          Result = 902
	ErrStreamCaptureUnmatched      Result = 903
	ErrStreamCaptureUnjoined       Result = 904
	ErrStreamCaptureIsolation      Result = 905
	ErrStreamCaptureImplicit       Result = 906
	ErrCapturedEvent               Result = 907
	ErrStreamCaptureWrongThread    Result = 908
	ErrTimeout                     Result = 909
	ErrGraphExecUpdateFailure      Result = 910
	ErrExternalDevice              Result = 911
	ErrInvalidClusterSize          Result = 912
	ErrUnknown                     Result = 999
)

// Error is CUDA's name of the result: "CUDA_ERROR_OUT_OF_MEMORY".
func (r Result) Error() string {
	if n := results[r].name; n != "" {
		return n
	}
	return fmt.Sprintf("CUDA_ERROR_%d", int32(r))
}

// An Error is a failed call of the driver. It unwraps to its Result.
type Error struct {
	Call   string // "cuMemAlloc"
	Result Result
	Device int    // number of the device of the current context, -1 where unknown
	Detail string // sizes, addresses, what the JIT said; may be empty
	Remedy string // what to do; may be empty

	Follows bool // from the failure of earlier work, since which all calls fail
}

// Why is the reason alone, with what to do.
func (e *Error) Why() string {
	switch {
	case e.Detail == "":
		return results[e.Result].remedy
	case e.Remedy == "":
		return e.Detail
	}
	return e.Detail + ": " + e.Remedy
}

func (e *Error) Unwrap() error { return e.Result }

func (e *Error) Error() string {
	s := e.Call + ": "
	if e.Device >= 0 {
		s += fmt.Sprintf("device %d: ", e.Device)
	}
	s += e.Result.Error()
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	remedy := e.Remedy
	if remedy == "" {
		remedy = results[e.Result].remedy
	}
	if remedy != "" {
		s += ": " + remedy
	}
	return s
}
