package cudaemu_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

var rewriteOdd = flag.Bool("rewrite", false, "write testdata/odd.txt anew")

// TestOddCalls calls each function of the driver with zeros, and with handles and numbers that are none, with a context
// and without, on a machine that is closed and on an old driver. The answers are in testdata/odd.txt.
func TestOddCalls(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var lines []string
	for _, state := range []struct {
		name    string
		version int
		context bool
		closed  bool
		number  int64
	}{
		{name: "no context, zeros"},
		{name: "no context, unknown", number: 12345},
		{name: "zeros", context: true},
		{name: "ones", context: true, number: 1},
		{name: "unknown", context: true, number: 12345},
		{name: "negative", context: true, number: -5},
		{name: "closed", closed: true},
		{name: "CUDA 11.0", version: 11000, context: true},
	} {
		driver := reflect.TypeFor[cuda.Driver]()
		for i := range driver.NumMethod() {
			method := driver.Method(i)
			if n := method.Type.NumOut(); method.Type.Out(n-1) != reflect.TypeFor[error]() {
				continue
			}
			m := must.Get(cudaemu.New(cudaemu.Config{Devices: 2, DriverVersion: state.version}))
			if state.context {
				ctx := must.Get(m.DevicePrimaryCtxRetain(0))
				require.NoError(t, m.CtxPushCurrent(ctx))
			}
			if state.closed {
				m.Close()
			}
			said := oddCall(reflect.ValueOf(m).MethodByName(method.Name), state.number)
			lines = append(lines, fmt.Sprintf("%s: %s: %s", state.name, method.Name, said))
			m.Close() // its error names objects that are left, and does not matter
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	const file = "testdata/odd.txt"
	if *rewriteOdd {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want := must.Get(os.ReadFile(file))
	require.Equal(t, string(want), text)
}

// thread is the number of a thread in an answer.
var thread = regexp.MustCompile(`thread \d+`)

// oddCall calls a function, with number for each argument that is a number, and returns the answer as text.
func oddCall(f reflect.Value, number int64) string {
	var args []reflect.Value
	for i := range f.Type().NumIn() {
		args = append(args, oddValue(f.Type().In(i), number))
	}
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	out := call(args)
	err, _ := out[len(out)-1].Interface().(error)
	var e *cuda.Error
	switch {
	case err == nil:
		return "ok"
	case !errors.As(err, &e):
		return err.Error()
	case e.Detail == "":
		return e.Result.Error()
	}
	return e.Result.Error() + " (" + thread.ReplaceAllString(strings.ReplaceAll(e.Detail, "\n", " "), "this thread") + ")"
}

func oddValue(t reflect.Type, number int64) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Int, reflect.Int32:
		v.SetInt(number)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(number))
	case reflect.String:
		v.SetString("none")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		v.Index(0).Set(oddValue(t.Elem(), number))
	case reflect.Array:
		v.Index(0).Set(oddValue(t.Elem(), number))
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(oddValue(t.Field(i).Type, number))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case reflect.Func:
		v.Set(reflect.ValueOf(func() {}))
	}
	return v
}
