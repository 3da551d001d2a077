package ptxcheck

import (
	"fmt"
	"strconv"
	"strings"
)

// A value is a number or an address.
type value struct {
	n       int64
	f       float64
	float   bool // the number is f, else n
	address bool
}

func (v value) real() float64 {
	if v.float {
		return v.f
	}
	return float64(v.n)
}

// A scope gives the names in an expression their values.
type scope struct {
	rank, gpus int
	element    int // -1 where there is none
	// buffer is the address of a buffer on a GPU; nil where addresses have no meaning.
	buffer func(name string, gpu int) (uint64, error)
}

// eval is the value of an expression: numbers, + - * / %, parentheses, rank, gpus, i, buffers,
// NAME@GPU, and pick(a, b, …), which is the value with the GPU's number.
func eval(text string, s scope) (value, error) {
	e := &expression{text: text, scope: s}
	v, err := e.sum()
	if err == nil && e.peek() != 0 {
		err = fmt.Errorf("%q is too much", e.text[e.at:])
	}
	if err != nil {
		return value{}, fmt.Errorf("expression %q: %w", text, err)
	}
	return v, nil
}

// An expression is being read.
type expression struct {
	text string
	at   int
	scope
}

// peek is the next byte that is no space, 0 at the end.
func (e *expression) peek() byte {
	for e.at < len(e.text) && (e.text[e.at] == ' ' || e.text[e.at] == '\t') {
		e.at++
	}
	if e.at == len(e.text) {
		return 0
	}
	return e.text[e.at]
}

func (e *expression) accept(c byte) bool {
	if e.peek() != c {
		return false
	}
	e.at++
	return true
}

func (e *expression) sum() (value, error)     { return e.chain("+-", e.product) }
func (e *expression) product() (value, error) { return e.chain("*/%", e.unary) }

// chain is operands joined by operators of one precedence.
func (e *expression) chain(operators string, operand func() (value, error)) (value, error) {
	v, err := operand()
	for err == nil && e.peek() != 0 && strings.IndexByte(operators, e.peek()) >= 0 {
		op := e.text[e.at]
		e.at++
		var w value
		if w, err = operand(); err == nil {
			v, err = calculate(op, v, w)
		}
	}
	return v, err
}

func calculate(op byte, a, b value) (value, error) {
	if (a.address || b.address) &&
		(op != '+' && op != '-' || a.float || b.float || b.address && (op == '-' || a.address)) {
		return value{}, fmt.Errorf("only whole numbers may be added to an address or taken from it")
	}
	if a.float || b.float {
		x, y := a.real(), b.real()
		switch op {
		case '+':
			x += y
		case '-':
			x -= y
		case '*':
			x *= y
		case '/':
			x /= y
		default:
			return value{}, fmt.Errorf("%% is for whole numbers")
		}
		return value{f: x, float: true}, nil
	}
	v := value{address: a.address || b.address}
	switch op {
	case '+':
		v.n = a.n + b.n
	case '-':
		v.n = a.n - b.n
	case '*':
		v.n = a.n * b.n
	default:
		if b.n == 0 {
			return value{}, fmt.Errorf("division by 0")
		}
		if op == '/' {
			v.n = a.n / b.n
		} else {
			v.n = ((a.n % b.n) + b.n) % b.n // of the sign of b, so (rank-1)%gpus is a rank
		}
	}
	return v, nil
}

func (e *expression) unary() (value, error) {
	if !e.accept('-') {
		return e.primary()
	}
	v, err := e.unary()
	if v.address {
		return v, fmt.Errorf("an address has no sign")
	}
	v.n, v.f = -v.n, -v.f
	return v, err
}

func (e *expression) primary() (value, error) {
	switch c := e.peek(); {
	case c == '(':
		e.at++
		v, err := e.sum()
		if err == nil && !e.accept(')') {
			err = fmt.Errorf("( without its )")
		}
		return v, err
	case c >= '0' && c <= '9' || c == '.':
		return e.number()
	case letter(c):
		return e.named()
	case c == 0:
		return value{}, fmt.Errorf("something is missing at its end")
	}
	return value{}, fmt.Errorf("%q is neither a number nor a name", e.text[e.at:])
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}

// word reads letters, digits and the bytes for which more is true, such as the point of a number.
func (e *expression) word(more func(c byte) bool) string {
	from := e.at
	for e.at < len(e.text) && (letter(e.text[e.at]) || e.text[e.at] >= '0' && e.text[e.at] <= '9' || more(e.text[e.at])) {
		e.at++
	}
	return e.text[from:e.at]
}

func (e *expression) number() (value, error) {
	from := e.at
	hex := strings.HasPrefix(e.text[from:], "0x") || strings.HasPrefix(e.text[from:], "0X")
	text := e.word(func(c byte) bool {
		if c != '+' && c != '-' {
			return c == '.'
		}
		last := e.text[max(from, e.at-1)]
		return !hex && (last == 'e' || last == 'E')
	})
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return value{n: n}, nil
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return value{n: int64(n)}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return value{}, fmt.Errorf("%q is not a number", text)
	}
	return value{f: f, float: true}, nil
}

func (e *expression) named() (value, error) {
	name := e.word(func(byte) bool { return false })
	switch {
	case name == "rank":
		return value{n: int64(e.rank)}, nil
	case name == "gpus":
		return value{n: int64(e.gpus)}, nil
	case name == "i" && e.element >= 0:
		return value{n: int64(e.element)}, nil
	case name == "i":
		return value{}, fmt.Errorf("i is the number of an element, and this is none")
	case name == "inf" || name == "nan":
		f, _ := strconv.ParseFloat(name, 64)
		return value{f: f, float: true}, nil
	case name == "pick" && e.accept('('):
		return e.pick()
	case e.buffer == nil:
		return value{}, fmt.Errorf("%q is unknown here: use numbers, rank, gpus, i", name)
	}
	gpu := e.rank
	if e.accept('@') {
		v, err := e.primary()
		if err != nil {
			return v, err
		}
		if v.float || v.address || v.n < 0 || v.n >= int64(e.gpus) {
			return v, fmt.Errorf("%s@%v: GPUs are 0 to %d; write %s@((rank+1)%%gpus) for the next one", name, v.real(), e.gpus-1,
				name)
		}
		gpu = int(v.n)
	}
	a, err := e.buffer(name, gpu)
	return value{n: int64(a), address: true}, err
}

func (e *expression) pick() (value, error) {
	var all []value
	for {
		v, err := e.sum()
		if err != nil {
			return v, err
		}
		all = append(all, v)
		if e.accept(',') {
			continue
		}
		if !e.accept(')') {
			return v, fmt.Errorf("pick( without its )")
		}
		if e.rank >= len(all) {
			return v, fmt.Errorf("pick has %d values, and there is a GPU %d", len(all), e.rank)
		}
		return all[e.rank], nil
	}
}
