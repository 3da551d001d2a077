//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type propertiesV10 = propertiesV9

type propertiesV11 struct {
	propertiesV10
	maxMultiRequestSize int32
}

// The structs of Go have the layout that a C compiler gives the plugin's structs.
func TestLayout(t *testing.T) {
	f := newFake(t, version(11))
	b := make([]byte, 1<<14)
	f.call(t, "layout", addr(&b[0]), uintptr(len(b)))
	theirs := map[string]string{}
	for line := range strings.Lines(text(addr(&b[0]), len(b))) {
		field, offset, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, offset, _ := strings.Cut(offset, " ")
		theirs[field+" "+name] = offset
	}
	ours := map[string]string{}
	for name, s := range map[string]any{"properties8": propertiesV8{}, "properties9": propertiesV9{},
		"properties10": propertiesV10{}, "properties11": propertiesV11{propertiesV10: propertiesV10{},
			maxMultiRequestSize: 1}} {
		typ := reflect.TypeOf(s)
		ours[name+" size"] = fmt.Sprint(typ.Size())
		for _, field := range reflect.VisibleFields(typ) {
			if !field.Anonymous { // an embedded struct is at the start
				ours[name+" "+field.Name] = fmt.Sprint(field.Offset)
			}
		}
	}
	for _, v := range versions {
		table := fmt.Sprint("net", v.number)
		word := func(i int) string { return fmt.Sprint(i * int(unsafe.Sizeof(uintptr(0)))) }
		ours[table+" name"], ours[table+" size"] = word(0), word(1+v.functions)
		for i := range v.functions {
			ours[table+" "+functionNames[i]] = word(1 + i)
		}
	}
	require.Equal(t, theirs, ours)
}
