package cudac

import (
	"errors"
	"fmt"
	"os"

	"github.com/ringo-go/ringo/internal/cuda"
)

func (a *Args) stream(n int) cuda.Stream { return cuda.Stream(a[n]) }

var streams = map[string]function{
	"cuStreamCreateWithPriority": func(l *Library, a *Args) error {
		return give(l.d.StreamCreate(cuda.StreamFlags(a.u(1)), a.i(2))).to(a[0])
	},
	"cuStreamCreate": func(l *Library, a *Args) error {
		return give(l.d.StreamCreate(cuda.StreamFlags(a.u(1)), 0)).to(a[0])
	},
	"cuStreamDestroy_v2":  func(l *Library, a *Args) error { return l.d.StreamDestroy(a.stream(0)) },
	"cuStreamSynchronize": func(l *Library, a *Args) error { return l.d.StreamSynchronize(a.stream(0)) },
	"cuStreamQuery":       func(l *Library, a *Args) error { return notReady(l.d.StreamQuery(a.stream(0))) },
	"cuStreamWaitEvent": func(l *Library, a *Args) error {
		return l.d.StreamWaitEvent(a.stream(0), cuda.Event(a[1]), a.u(2))
	},
	"cuStreamGetCtx":   func(l *Library, a *Args) error { return give(l.d.StreamGetCtx(a.stream(0))).to(a[1]) },
	"cuStreamGetFlags": func(l *Library, a *Args) error { return give(l.d.StreamGetFlags(a.stream(0))).to(a[1]) },
	"cuStreamGetPriority": func(l *Library, a *Args) error {
		return giveInt(l.d.StreamGetPriority(a.stream(0))).to(a[1])
	},
	"cuStreamGetId": func(l *Library, a *Args) error { return give(l.d.StreamGetId(a.stream(0))).to(a[1]) },
	"cuLaunchHostFunc": func(l *Library, a *Args) error {
		return l.d.LaunchHostFunc(a.stream(0), l.callback(a[1], a[2]))
	},
	"cuStreamWriteValue32_v2": func(l *Library, a *Args) error {
		return l.d.StreamWriteValue32(a.stream(0), a[1], a.u(2), a.u(3))
	},
	"cuStreamWriteValue64_v2": func(l *Library, a *Args) error {
		return l.d.StreamWriteValue64(a.stream(0), a[1], uint64(a[2]), a.u(3))
	},
	"cuStreamWaitValue32_v2": func(l *Library, a *Args) error {
		return l.d.StreamWaitValue32(a.stream(0), a[1], a.u(2), cuda.WaitFlags(a.u(3)))
	},
	"cuStreamWaitValue64_v2": func(l *Library, a *Args) error {
		return l.d.StreamWaitValue64(a.stream(0), a[1], uint64(a[2]), cuda.WaitFlags(a.u(3)))
	},
}

var captures = map[string]function{
	"cuStreamBeginCapture_v2": func(l *Library, a *Args) error {
		return l.d.StreamBeginCapture(a.stream(0), cuda.CaptureMode(a.u(1)))
	},
	"cuStreamBeginCaptureToGraph": func(l *Library, a *Args) error {
		return l.d.StreamBeginCaptureToGraph(a.stream(0), cuda.Graph(a[1]), list[cuda.GraphNode](a[2], a[4]),
			cuda.CaptureMode(a.u(5)))
	},
	"cuStreamEndCapture": func(l *Library, a *Args) error {
		return give(l.d.StreamEndCapture(a.stream(0))).to(a[1])
	},
	"cuStreamIsCapturing": func(l *Library, a *Args) error {
		return give(l.d.StreamIsCapturing(a.stream(0))).to(a[1])
	},
	"cuStreamGetCaptureInfo_v2": func(l *Library, a *Args) error {
		info, err := l.d.StreamGetCaptureInfo(a.stream(0))
		if err := put(a[1], info.Status, err); err != nil || info.Status != cuda.CaptureActive {
			return err
		}
		return errors.Join(put(a[2], info.ID, nil), put(a[3], info.Graph, nil),
			put(a[4], l.nodesOf(a.stream(0), info.Dependencies), nil), put(a[5], len(info.Dependencies), nil))
	},
	"cuStreamUpdateCaptureDependencies": func(l *Library, a *Args) error {
		return l.d.StreamUpdateCaptureDependencies(a.stream(0), list[cuda.GraphNode](a[1], a[2]), a.u(3))
	},
	"cuThreadExchangeStreamCaptureMode": func(l *Library, a *Args) error {
		return give(l.d.ThreadExchangeStreamCaptureMode(*at[cuda.CaptureMode](a[0]))).to(a[0])
	},
}

var events = map[string]function{
	"cuEventCreate": func(l *Library, a *Args) error {
		return give(l.d.EventCreate(cuda.EventFlags(a.u(1)))).to(a[0])
	},
	"cuEventDestroy_v2": func(l *Library, a *Args) error { return l.d.EventDestroy(cuda.Event(a[0])) },
	"cuEventRecord":     func(l *Library, a *Args) error { return l.d.EventRecord(cuda.Event(a[0]), a.stream(1)) },
	"cuEventRecordWithFlags": func(l *Library, a *Args) error {
		return l.d.EventRecordWithFlags(cuda.Event(a[0]), a.stream(1), a.u(2))
	},
	"cuEventQuery":       func(l *Library, a *Args) error { return notReady(l.d.EventQuery(cuda.Event(a[0]))) },
	"cuEventSynchronize": func(l *Library, a *Args) error { return l.d.EventSynchronize(cuda.Event(a[0])) },
	"cuEventElapsedTime": func(l *Library, a *Args) error {
		return give(l.d.EventElapsedTime(cuda.Event(a[1]), cuda.Event(a[2]))).to(a[0])
	},
}

// Options of cuModuleLoadDataEx, and marks of the array "extra" of a launch.
const (
	jitErrorLogBuffer = 5
	jitErrorLogBytes  = 6

	launchBuffer = 1
	launchSize   = 2

	launchCooperative = 2 // attributes
	launchCluster     = 4
	launchPriority    = 8
)

// parameters is a driver that knows the parameters of kernels, as the emulator does.
type parameters interface {
	FuncGetParamInfo(f cuda.Function, i int) (offset, size int, err error)
}

// clusters are launches of them, likewise.
type clusters interface {
	LaunchClusters(f cuda.Function, l *cuda.Launch, cluster cuda.Dim3, args []byte) error
	OccupancyMaxActiveClusters(f cuda.Function, l *cuda.Launch, cluster cuda.Dim3) (int, error)
	OccupancyMaxPotentialClusterSize(f cuda.Function, l *cuda.Launch, cluster cuda.Dim3) (int, error)
}

// launchOf is a launch as a program configures it, and how many blocks its clusters have.
func launchOf(config uintptr) (l *cuda.Launch, cluster cuda.Dim3) {
	c := at[launchConfig](config)
	l = &cuda.Launch{Grid: c.grid, Block: c.block, Shared: int(c.shared), Stream: c.stream}
	for _, attr := range list[launchAttribute](c.attrs, uintptr(c.numAttrs)) {
		switch attr.id {
		case launchCooperative:
			l.Cooperative = attr.value[0] != 0
		case launchCluster:
			cluster = cuda.Dim3{X: attr.value[0], Y: attr.value[1], Z: attr.value[2]}
		case launchPriority:
			l.Priority = int(int32(attr.value[0]))
		}
	}
	return l, cluster
}

// occupancy answers a question about the clusters of a launch.
func occupancy(ask func(clusters, cuda.Function, *cuda.Launch, cuda.Dim3) (int, error)) function {
	return func(l *Library, a *Args) error {
		d, ok := l.d.(clusters)
		if !ok {
			return cuda.ErrNotSupported
		}
		f, err := l.functionOf(a[1])
		if err != nil {
			return err
		}
		launch, cluster := launchOf(a[2])
		n, err := ask(d, f, launch, cluster)
		return put(a[0], int32(n), err)
	}
}

// paramInfo is the offset and the size, in bytes, of a kernel's parameter i among its arguments.
func (l *Library) paramInfo(f cuda.Function, i int) (offset, size int, err error) {
	if d, ok := l.d.(parameters); ok {
		return d.FuncGetParamInfo(f, i)
	}
	return 0, 0, cuda.ErrNotSupported
}

// arguments are the bytes of a kernel's parameters, which a program gives as a block (extra) or one by
// one (params).
func (l *Library) arguments(f cuda.Function, params, extra uintptr) ([]byte, error) {
	if extra != 0 {
		var block, size uintptr
		for at := extra; *word(at) != 0; at += 16 {
			switch *word(at) {
			case launchBuffer:
				block = *word(at + 8)
			case launchSize:
				size = *word(*word(at + 8))
			}
		}
		return list[byte](block, size), nil
	}
	var args []byte
	for i := 0; ; i++ {
		offset, size, err := l.paramInfo(f, i)
		if errors.Is(err, cuda.ErrInvalidValue) { // there are no more parameters
			return args, nil
		}
		if err != nil {
			return nil, err
		}
		if params == 0 {
			return nil, fmt.Errorf("%w: the kernel has parameters, and the launch has none", cuda.ErrInvalidValue)
		}
		args = append(args, make([]byte, offset+size-len(args))...)
		copy(args[offset:], list[byte](*word(params + 8*uintptr(i)), uintptr(size)))
	}
}

func word(p uintptr) *uintptr { return at[uintptr](p) }

var modules = map[string]function{
	"cuModuleLoadData": func(l *Library, a *Args) error {
		m, err := l.load(a[1])
		return put(a[0], m, err)
	},
	"cuModuleLoad": func(l *Library, a *Args) error {
		if a[1] == 0 {
			return cuda.ErrInvalidValue
		}
		image, err := os.ReadFile(text(a[1]))
		if err != nil {
			return cuda.ErrFileNotFound
		}
		m, err := l.loadImage(image)
		return put(a[0], m, err)
	},
	"cuModuleLoadFatBinary": func(l *Library, a *Args) error {
		m, err := l.load(a[1])
		return put(a[0], m, err)
	},
	"cuModuleLoadDataEx": func(l *Library, a *Args) error {
		m, err := l.load(a[1])
		var failed *cuda.Error
		if errors.As(err, &failed) {
			var room, size uintptr
			for i := uintptr(0); i < a[2]; i++ {
				switch v := *word(a[4] + 8*i); *at[uint32](a[3] + 4*i) {
				case jitErrorLogBuffer:
					room = v
				case jitErrorLogBytes:
					size = v
				}
			}
			putText(room, size, failed.Detail)
		}
		return put(a[0], m, err)
	},
	"cuModuleUnload": func(l *Library, a *Args) error { return l.d.ModuleUnload(cuda.Module(a[0])) },
	"cuModuleGetFunction": func(l *Library, a *Args) error {
		if a[2] == 0 {
			return cuda.ErrInvalidValue
		}
		f, err := l.d.ModuleGetFunction(cuda.Module(a[1]), text(a[2]))
		return put(a[0], f, err)
	},
	"cuModuleGetGlobal_v2": func(l *Library, a *Args) error {
		if a[3] == 0 {
			return cuda.ErrInvalidValue
		}
		p, n, err := l.d.ModuleGetGlobal(cuda.Module(a[2]), text(a[3]))
		if err := put(a[0], p, err); err != nil {
			return err
		}
		return put(a[1], n, err)
	},
	"cuFuncGetAttribute": func(l *Library, a *Args) error {
		return giveInt(l.d.FuncGetAttribute(cuda.FunctionAttribute(a.i(1)), cuda.Function(a[2]))).to(a[0])
	},
	"cuFuncSetAttribute": func(l *Library, a *Args) error {
		return l.d.FuncSetAttribute(cuda.Function(a[0]), cuda.FunctionAttribute(a.i(1)), a.i(2))
	},
	"cuFuncGetParamInfo": func(l *Library, a *Args) error {
		offset, size, err := l.paramInfo(cuda.Function(a[0]), int(a[1]))
		if err := put(a[2], offset, err); err != nil {
			return err
		}
		return put(a[3], size, err)
	},
	"cuOccupancyMaxActiveBlocksPerMultiprocessor": func(l *Library, a *Args) error {
		return giveInt(l.d.OccupancyMaxActiveBlocksPerMultiprocessor(cuda.Function(a[1]), a.i(2), int(a[3]))).to(a[0])
	},
	"cuLaunchKernel": func(l *Library, a *Args) error {
		f, err := l.functionOf(a[0])
		if err != nil {
			return err
		}
		args, err := l.arguments(f, a[9], a[10])
		if err != nil {
			return err
		}
		return l.d.LaunchKernel(f, &cuda.Launch{
			Grid: cuda.Dim3{X: a.u(1), Y: a.u(2), Z: a.u(3)}, Block: cuda.Dim3{X: a.u(4), Y: a.u(5), Z: a.u(6)},
			Shared: int(a.u(7)), Stream: a.stream(8),
		}, args)
	},
	"cuLaunchCooperativeKernel": func(l *Library, a *Args) error {
		f, err := l.functionOf(a[0])
		if err != nil {
			return err
		}
		args, err := l.arguments(f, a[9], 0)
		if err != nil {
			return err
		}
		return l.d.LaunchKernel(f, &cuda.Launch{
			Grid: cuda.Dim3{X: a.u(1), Y: a.u(2), Z: a.u(3)}, Block: cuda.Dim3{X: a.u(4), Y: a.u(5), Z: a.u(6)},
			Shared: int(a.u(7)), Stream: a.stream(8), Cooperative: true,
		}, args)
	},
	"cuLaunchKernelEx": func(l *Library, a *Args) error {
		if a[0] == 0 {
			return cuda.ErrInvalidValue
		}
		launch, cluster := launchOf(a[0])
		f, err := l.functionOf(a[1])
		if err != nil {
			return err
		}
		args, err := l.arguments(f, a[2], a[3])
		if err != nil {
			return err
		}
		if d, ok := l.d.(clusters); ok {
			return d.LaunchClusters(f, launch, cluster, args)
		}
		return l.d.LaunchKernel(f, launch, args)
	},
	"cuOccupancyMaxActiveClusters":       occupancy(clusters.OccupancyMaxActiveClusters),
	"cuOccupancyMaxPotentialClusterSize": occupancy(clusters.OccupancyMaxPotentialClusterSize),
}
