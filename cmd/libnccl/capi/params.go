package capi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo"
)

// Parameters are the names of NCCL's variables that have an effect here. A parameter's number
// is its index in the list.
func Parameters() []string { return parameterNames }

// Parameter is the number of a parameter, whose key may lack the prefix NCCL_.
func (l *Library) Parameter(key string) (int, error) {
	if !strings.HasPrefix(key, "NCCL_") {
		key = "NCCL_" + key
	}
	i := slices.Index(parameterNames, key)
	if i < 0 {
		return 0, fmt.Errorf("%w: no parameter %q has an effect: there are %s", ringo.ErrInvalid, key,
			strings.Join(parameterNames, ", "))
	}
	return i, nil
}

// ParameterText is the value of a parameter, "" if it is not set.
func (l *Library) ParameterText(number int) (string, error) {
	if number < 0 || number >= len(parameterNames) {
		return "", fmt.Errorf("%w: no parameter has this handle", ringo.ErrInvalid)
	}
	return l.env.get(parameterNames[number]), nil
}

// ParameterInt is the value of a parameter as an integer of that many bits. An unsigned one is
// returned as the int64 of the same bits.
func (l *Library) ParameterInt(number, bits int, signed bool) (v int64, err error) {
	text, err := l.ParameterText(number)
	if err != nil {
		return 0, err
	}
	if signed {
		v, err = strconv.ParseInt(text, 0, bits)
	} else {
		var u uint64
		u, err = strconv.ParseUint(text, 0, bits)
		v = int64(u)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s=%q is no integer of %d bits", ringo.ErrInvalid, parameterNames[number], text, bits)
	}
	return v, nil
}
