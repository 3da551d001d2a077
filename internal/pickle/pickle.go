// Package pickle reads Python's pickles as far as they are data: None, booleans, numbers, strings, lists, tuples and
// dictionaries, by protocols 2 to 5. It calls nothing: a pickle that wants a class or a function is refused by its
// name, but for those by which PyTorch marks the types of lists and dictionaries.
//
// It is for files of strangers. It takes memory for what a file has, not for what it claims to have, which is
// where github.com/nlpodyssey/gopickle 0.2.0 differs.
package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
)

// A List is a list or a tuple. The same List may be at several places, even within itself: a walk through it without a
// schema may never end.
type List struct{ Items []any }

// A Dict is a dictionary. Keys that are numbers are spelled in decimals. It is made for some dozens of keys: Get looks
// at each.
type Dict struct{ pairs []pair }

type pair struct {
	key   string
	value any
}

// Get is the value of a key, nil if there is none; of several the last. A nil Dict has none.
func (d *Dict) Get(key string) any {
	if d == nil {
		return nil
	}
	for i := len(d.pairs) - 1; i >= 0; i-- {
		if d.pairs[i].key == key {
			return d.pairs[i].value
		}
	}
	return nil
}

// Set adds a key.
func (d *Dict) Set(key string, value any) { d.pairs = append(d.pairs, pair{key, value}) }

// All are the keys and their values, as they were set: of a key that was set again both.
func (d *Dict) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		if d == nil {
			return
		}
		for _, p := range d.pairs {
			if !yield(p.key, p.value) {
				return
			}
		}
	}
}

// A global is a name of Python that the pickle has asked for.
type global string

// mark is where a list of arguments begins on the stack.
type mark struct{}

// Decode reads one pickle. Its result is nil, a bool, an int64, a float64, a string, a *List or a *Dict.
func Decode(b []byte) (any, error) {
	d := decoder{rest: b}
	for {
		op, err := d.byte()
		if err != nil {
			return nil, err
		}
		if op == '.' {
			v, err := d.pop()
			if err != nil {
				return nil, err
			}
			return check(v)
		}
		if err := d.do(op); err != nil {
			return nil, err
		}
	}
}

var (
	errShort = errors.New("pickle: it ends too early")
	errStack = errors.New("pickle: what it takes from the stack is not there")
)

// maxValues bounds the values of one pickle, to some GiB of memory.
const maxValues = 1 << 26

type decoder struct {
	rest  []byte
	stack []any
	memo  []any
	made  int
}

func (d *decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.rest)) {
		return nil, errShort
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b, nil
}

func (d *decoder) byte() (byte, error) {
	b, err := d.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// number reads an unsigned number of n bytes, the lowest first.
func (d *decoder) number(n int) (uint64, error) {
	b, err := d.take(uint64(n))
	if err != nil {
		return 0, err
	}
	var long [8]byte
	copy(long[:], b)
	return binary.LittleEndian.Uint64(long[:]), nil
}

func (d *decoder) push(v any) error {
	if d.made++; d.made > maxValues {
		return fmt.Errorf("pickle: more than %d values", maxValues)
	}
	d.stack = append(d.stack, v)
	return nil
}

func (d *decoder) pop() (any, error) {
	n := len(d.stack)
	if n == 0 {
		return nil, errStack
	}
	v := d.stack[n-1]
	d.stack = d.stack[:n-1]
	return v, nil
}

func (d *decoder) top() (any, error) {
	if len(d.stack) == 0 {
		return nil, errStack
	}
	return d.stack[len(d.stack)-1], nil
}

// marked takes all values after the last mark, and the mark. They are good until the next push.
func (d *decoder) marked() ([]any, error) {
	for i := len(d.stack) - 1; i >= 0; i-- {
		if _, ok := d.stack[i].(mark); ok {
			list := d.stack[i+1:]
			d.stack = d.stack[:i]
			return list, nil
		}
	}
	return nil, errStack
}

// last takes the last n values.
func (d *decoder) last(n int) ([]any, error) {
	if len(d.stack) < n {
		return nil, errStack
	}
	list := d.stack[len(d.stack)-n:]
	d.stack = d.stack[:len(d.stack)-n]
	return list, nil
}

// do carries out one operation.
func (d *decoder) do(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := d.take(1)
		return err
	case 0x95: // FRAME
		_, err := d.take(8)
		return err
	case 'N':
		return d.push(nil)
	case 0x88:
		return d.push(true)
	case 0x89:
		return d.push(false)
	case '(':
		return d.push(mark{})
	case '0':
		_, err := d.pop()
		return err
	case '1':
		_, err := d.marked()
		return err
	case 'K', 'M', 'J', 'G', 0x8a:
		return d.numeric(op)
	case 'X', 0x8c, 0x8d, 'T', 'U', 'B', 'C', 0x8e:
		return d.text(op)
	case ']', ')', '}', 'a', 'e', 's', 'u', 't', 'l', 'd', 0x85, 0x86, 0x87:
		return d.container(op)
	case 'q', 'r', 0x94, 'h', 'j':
		return d.remember(op)
	case 'c', 0x93, 'R':
		return d.call(op)
	}
	return fmt.Errorf("pickle: operation %q is not for data", op)
}

// width is how many bytes the number has that follows an operation: a value, a length, or a place.
func width(op byte) int {
	switch op {
	case 'M':
		return 2
	case 'J', 'X', 'T', 'B', 'r', 'j':
		return 4
	case 0x8d, 0x8e:
		return 8
	}
	return 1
}

func (d *decoder) numeric(op byte) error {
	switch op {
	case 'K', 'M':
		v, err := d.number(width(op))
		if err != nil {
			return err
		}
		return d.push(int64(v))
	case 'J':
		v, err := d.number(width(op))
		if err != nil {
			return err
		}
		return d.push(int64(int32(v)))
	case 'G':
		b, err := d.take(8)
		if err != nil {
			return err
		}
		return d.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	}
	n, err := d.byte()
	if err != nil {
		return err
	}
	if n > 8 {
		return fmt.Errorf("pickle: an integer of %d bytes", n)
	}
	v, err := d.number(int(n))
	if err != nil {
		return err
	}
	shift := 64 - 8*uint(n)
	return d.push(int64(v<<shift) >> shift)
}

func (d *decoder) text(op byte) error {
	n, err := d.number(width(op))
	if err != nil {
		return err
	}
	b, err := d.take(n)
	if err != nil {
		return err
	}
	return d.push(string(b))
}

func (d *decoder) container(op byte) error {
	switch op {
	case ']', ')':
		return d.push(&List{})
	case '}':
		return d.push(&Dict{})
	case 0x85, 0x86, 0x87:
		items, err := d.last(int(op - 0x84))
		if err != nil {
			return err
		}
		return d.push(&List{append([]any(nil), items...)})
	case 'a':
		return d.extend(d.last(1))
	case 'e':
		return d.extend(d.marked())
	case 's':
		return d.set(d.last(2))
	case 'u':
		return d.set(d.marked())
	}
	items, err := d.marked()
	if err != nil {
		return err
	}
	if op == 'd' {
		items = append([]any(nil), items...)
		if err := d.push(&Dict{}); err != nil {
			return err
		}
		return d.set(items, nil)
	}
	return d.push(&List{append([]any(nil), items...)})
}

func (d *decoder) extend(items []any, err error) error {
	if err != nil {
		return err
	}
	v, err := d.top()
	if err != nil {
		return err
	}
	list, ok := v.(*List)
	if !ok {
		return fmt.Errorf("pickle: items for %T, which is no list", v)
	}
	list.Items = append(list.Items, items...)
	return nil
}

func (d *decoder) set(items []any, err error) error {
	if err != nil {
		return err
	}
	v, err := d.top()
	if err != nil {
		return err
	}
	dict, ok := v.(*Dict)
	if !ok || len(items)%2 != 0 {
		return fmt.Errorf("pickle: %d keys and values for %T", len(items), v)
	}
	dict.pairs = slices.Grow(dict.pairs, len(items)/2)
	for i := 0; i < len(items); i += 2 {
		switch key := items[i].(type) {
		case string:
			dict.Set(key, items[i+1])
		case int64:
			dict.Set(strconv.FormatInt(key, 10), items[i+1])
		default:
			return fmt.Errorf("pickle: a key of type %T", key)
		}
	}
	return nil
}

// remember stores the last value, or gets a stored one.
func (d *decoder) remember(op byte) error {
	at := uint64(len(d.memo))
	if op != 0x94 {
		var err error
		if at, err = d.number(width(op)); err != nil {
			return err
		}
	}
	if op == 'h' || op == 'j' {
		if at >= uint64(len(d.memo)) {
			return errStack
		}
		return d.push(d.memo[at])
	}
	v, err := d.top()
	if err != nil {
		return err
	}
	if at > uint64(len(d.memo)) {
		return fmt.Errorf("pickle: value %d is stored before value %d", at, len(d.memo))
	}
	if at == uint64(len(d.memo)) {
		d.memo = append(d.memo, v)
	}
	d.memo[at] = v
	return nil
}

// call pushes the name of a function, or replaces a call of a known function by its first argument.
func (d *decoder) call(op byte) error {
	if op == 'R' {
		two, err := d.last(2)
		if err != nil {
			return err
		}
		args, ok := two[1].(*List)
		if _, known := two[0].(global); !known || !ok || len(args.Items) == 0 {
			return errors.New("pickle: a call that is not for data")
		}
		return d.push(args.Items[0])
	}
	var module, name string
	if op == 'c' {
		for _, text := range []*string{&module, &name} {
			for {
				b, err := d.byte()
				if err != nil {
					return err
				}
				if b == '\n' {
					break
				}
				*text += string(rune(b))
				if len(*text) > 200 {
					return errors.New("pickle: a name without end")
				}
			}
		}
	} else {
		two, err := d.last(2)
		if err != nil {
			return err
		}
		module, _ = two[0].(string)
		name, _ = two[1].(string)
	}
	if module != "torch.jit._pickle" {
		return fmt.Errorf("pickle: it wants %.100q of %.100q: it is no plain data and is not read", name, module)
	}
	return d.push(global(name))
}

// check refuses a result that is no value, but a mark or the name of a function.
func check(v any) (any, error) {
	switch v.(type) {
	case mark, global:
		return nil, errStack
	}
	return v, nil
}
