//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Each call of a driver that lacks all functions says which it lacks, and keeps nothing.
func TestAllSymbolsMissing(t *testing.T) {
	lib := must.Get(dl.Open(build(t, "fake.c", "EMPTY")))
	d := &libcuda{lib: lib, version: 13000}
	callbacks.Lock()
	before := len(callbacks.f)
	callbacks.Unlock()
	driver := reflect.TypeFor[Driver]()
	names := map[string]bool{}
	for _, s := range symbols {
		names[s.name] = true
	}
	for i := range driver.NumMethod() {
		method := driver.Method(i)
		if method.Name == "Name" || method.Name == "DriverGetVersion" {
			continue
		}
		f := reflect.ValueOf(d).MethodByName(method.Name)
		var args []reflect.Value
		for i := range f.Type().NumIn() {
			v := reflect.New(f.Type().In(i)).Elem()
			switch v.Kind() {
			case reflect.Slice:
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			case reflect.Pointer:
				v.Set(reflect.New(v.Type().Elem()))
			case reflect.Func:
				v.Set(reflect.ValueOf(func() {}))
			}
			args = append(args, v)
		}
		call := f.Call
		if f.Type().IsVariadic() {
			call = f.CallSlice
		}
		out := call(args)
		err, _ := out[len(out)-1].Interface().(error)
		require.ErrorIs(t, err, ErrSharedObjectSymbolNotFound, method.Name)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.True(t, names[e.Call], e.Call)
		require.Equal(t, "install a newer NVIDIA driver", e.Remedy)
		for _, v := range out[:len(out)-1] {
			if v.Kind() != reflect.Slice && v.Kind() != reflect.Struct {
				require.True(t, v.IsZero(), method.Name)
			}
		}
	}
	require.ErrorContains(t, LaunchAndRecord(d, 1, &Launch{Cooperative: true}, nil, 2), "cuLaunchKernelEx: ")
	require.ErrorContains(t, Look(d, 1, true).Err, "cuCtxGetCurrent: ")
	callbacks.Lock()
	defer callbacks.Unlock()
	require.Len(t, callbacks.f, before)
	_, known := d.paramBytes(1)
	require.False(t, known)
}
