// Package ptx holds the GPU kernels of kernels/cuda as PTX text, for packages device, grid
// and meter: one small module for each data type and reduction, so that the driver's compiler
// has little to do when one is first used. modules.zip holds the texts; "go run ./gen
// -texts DIR" writes them as files to be read. The trap: Text decompresses a module, and
// some files in modules.zip have a compression of our own, so that other programs can list but
// not extract them. The package is part of a communicator; nothing here is promised to other modules.
//
// A module of combine.cu has two kernels, see Name.Combine and Name.Plain, both with the one parameter that this source
// declares and kernels/device.args mirrors. A new type or reduction is written in types.h or ops.h of kernels/cuda,
// listed here, and compiled by go generate.
package ptx

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"weak"
)

//go:generate go run ./gen

//go:embed modules.zip
var modules []byte

// Embedded is how many bytes all modules take in a program.
func Embedded() int { return len(modules) }

// A Name names a module.
type Name struct {
	Type string // as kernels.DataType.String gives it: "bfloat16"
	Op   string // "sum", "prod", "min", "max", "premulsum", "bitand", "bitor", "bitxor"
	SM   int    // least compute capability that it needs, times ten: 70 for sm_70

	// Source is the file of kernels/cuda that the module is made of, without its ending;
	// "combine" if empty.
	Source string
	Ranks  int // the number of ranks that it is compiled for, 0 for any
}

// Copy is the module of run.cu that only copies; its Name has neither Type nor Op.
var Copy = Name{SM: 70, Source: "run"}

// Bulk is the module of bulk.cu that only copies, which does the same as Copy by bulk copies.
var Bulk = Name{SM: 90, Source: "bulk"}

// Direct is the module of direct.cu that only copies.
var Direct = Name{SM: 70, Source: "direct"}

// Window is the module of window.cu that only copies.
var Window = Name{SM: 70, Source: "window"}

// Signal is the module of signal.cu.
var Signal = Name{SM: 70, Source: "signal"}

// Meter is the module of meter.cu, whose kernels package bench/meter names.
var Meter = Name{SM: 70, Source: "meter"}

// String is "bfloat16_sum_sm_80" or "run_bfloat16_sum_sm_80", the file's name
// without its ending.
func (n Name) String() string {
	if n.Source == "" {
		return n.Type + "_" + n.Op + "_" + n.Target()
	}
	if n.Ranks > 0 {
		return fmt.Sprintf("%s_%d_ranks_%s", n.Run(), n.Ranks, n.Target())
	}
	return n.Run() + "_" + n.Target()
}

// File is the name of the source.
func (n Name) File() string {
	if n.Source == "" {
		return "combine.cu"
	}
	return n.Source + ".cu"
}

// Run is the name of the main kernel of a module of any source but combine.cu and meter.cu.
func (n Name) Run() string {
	if n.Type == "" {
		return n.Source + "_copy"
	}
	return n.Source + "_" + n.Type + "_" + n.Op
}

// Loose is the name of the kernel of a module of window.cu for buffers that lie unlike.
func (n Name) Loose() string {
	n.Source = "loose"
	return n.Run()
}

// Rows is the name of the kernel of a module of norm.cu for contributions in the GPU's own memory.
func (n Name) Rows() string {
	n.Source = "rows"
	return n.Run()
}

// The other kernels of the modules Copy and Bulk.
const (
	Over     = "over"     // tells the device that all kernels are to end
	Messages = "messages" // sends and receives side by side
	Notes    = "notes"    // Messages where all go as notes, see notes.h

	BulkMessages = "bulk_messages" // Messages, of the module Bulk
)

// Combine is the name of the fast kernel.
func (n Name) Combine() string { return "combine_" + n.Type + "_" + n.Op }

// Plain is the name of the kernel that is the reference.
func (n Name) Plain() string { return "plain_" + n.Type + "_" + n.Op }

// Target is the .target of the text: "sm_80".
func (n Name) Target() string { return fmt.Sprintf("sm_%d", n.SM) }

// Version is the version of the PTX language, times ten. A driver has to be as
// new as CUDA 11.0 for 70, 12.1 for 81.
func (n Name) Version() int {
	if n.SM < 89 {
		return 70
	}
	return 81
}

var (
	integers = []string{"int8", "uint8", "int32", "uint32", "int64", "uint64"}
	floats   = []string{"float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"}
	common   = []string{"sum", "prod", "min", "max", "premulsum"}
	bitwise  = []string{"bitand", "bitor", "bitxor"}
)

// All lists the modules there are.
func All() []Name {
	var all []Name
	for _, t := range slices.Concat(integers, floats) {
		for _, op := range slices.Concat(common, bitwise) {
			all = append(all, Variants(t, op)...)
			for _, source := range []string{"run", "direct", "many", "window", "bulk"} {
				all = append(all, VariantsOf(source, t, op, 0)...)
			}
		}
	}
	for _, ranks := range usualRanks {
		for _, t := range usualTypes {
			all = append(all, VariantsOf("direct", t, "sum", ranks)...)
			all = append(all, VariantsOf("many", t, "sum", ranks)...)
		}
		all = append(all, VariantsOf("direct", "", "", ranks)[0])
	}
	for _, t := range usualTypes {
		for _, ranks := range append([]int{0}, usualRanks...) {
			all = append(all, VariantsOf("norm", t, "sum", ranks)...)
		}
	}
	all = append(all, Copy, Bulk, Direct, Window, Signal, Meter)
	once := map[Name]bool{}
	return slices.DeleteFunc(all, func(n Name) bool {
		again := once[n]
		once[n] = true
		return again
	})
}

// usualTypes and usualRanks have, for sums, modules of direct.cu and many.cu that are compiled for one number of ranks:
// with 4 ranks they take 6 to 15 % less time than those for any number.
var (
	usualTypes = []string{"float16", "bfloat16", "float32"}
	usualRanks = []int{2, 4}
)

// VariantsOf is Variants for a source other than combine.cu. Modules for this number of ranks alone come first. With
// neither type nor operator they only copy; many.cu and norm.cu always reduce, norm.cu sums of usual types.
func VariantsOf(source, t, op string, ranks int) (all []Name) {
	usual := slices.Contains(usualTypes, t) && op == "sum"
	switch {
	case source == "norm" && !usual:
		return nil
	case source == "norm": // with conversions by hardware, without
		all = []Name{{Type: t, Op: op, SM: 89}, {Type: t, Op: op, SM: 70}}
	case t == "":
		all = []Name{{SM: 70}}
	case (source == "run" || source == "bulk") && op != "min" && op != "max":
		all = Variants(strings.TrimPrefix(t, "u"), op) // no division: signed and unsigned have the same bits
	default:
		all = Variants(t, op)
	}
	for i := range all {
		all[i].Source = source
	}
	ofRanks := slices.Clone(all)
	switch {
	case source == "bulk" && len(all) > 0:
		all[0].SM = Bulk.SM
		return all[:1]
	case source == "norm" && ranks == 2 && t != "float32": // few, for they are large
		ofRanks = ofRanks[:1]
	case source != "direct" && source != "many" || !slices.Contains(usualRanks, ranks) || t != "" && !usual:
		return all
	}
	for i := range ofRanks {
		ofRanks[i].Ranks = ranks
	}
	return append(ofRanks, all...)
}

// Variants lists the modules for a data type and a reduction, those for newer
// devices first; none if there is no such kernel. All compute the same. An
// average is sum with a division (integers) or premulsum (floats).
func Variants(t, op string) []Name {
	integer, float := slices.Contains(integers, t), slices.Contains(floats, t)
	shared, bits := slices.Contains(common, op), slices.Contains(bitwise, op)
	if !(shared && (integer || float) || bits && integer) {
		return nil
	}
	base := Name{Type: t, Op: op, SM: 70}
	switch t {
	case "bfloat16": // two conversions at a time
		return []Name{{Type: t, Op: op, SM: 80}, base}
	case "float8e4m3", "float8e5m2": // conversions by hardware
		return []Name{{Type: t, Op: op, SM: 89}, base}
	}
	return []Name{base}
}

// Text is the PTX of a module, 9 to 260 kB. The next call gives the same bytes, which nobody may change, unless memory
// was collected meanwhile: a program loads a module on several devices at a time, and seldom again.
func Text(n Name) ([]byte, error) {
	z, err := archive()
	if err != nil {
		return nil, err
	}
	texts.Lock()
	defer texts.Unlock()
	text, err := latest(z, n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("ptx: no module %v: run go generate ./kernels/ptx if it is new", n)
	}
	return text, err
}

// latest is Read, but for texts that are in memory. The caller has the lock of texts.
func latest(z *zip.Reader, n Name) ([]byte, error) {
	if text := texts.latest[n].Value(); text != nil {
		return *text, nil
	}
	text, err := read(z, n, func(m Name) ([]byte, error) { return latest(z, m) })
	if text = slices.Clip(text); err == nil { // to append makes a copy
		texts.latest[n] = weak.Make(&text)
	}
	return text, err
}

// texts are those that Text has given, as long as they are in memory.
var texts = struct {
	sync.Mutex
	latest map[Name]weak.Pointer[[]byte]
}{latest: map[Name]weak.Pointer[[]byte]{}}

// archive is modules.zip. A variable that holds a function would have the linker keep the file in programs without
// GPUs.
func archive() (*zip.Reader, error) {
	opened.Do(func() {
		opened.z, opened.err = zip.NewReader(bytes.NewReader(modules), int64(len(modules)))
		if opened.err != nil {
			opened.err = fmt.Errorf("ptx: modules.zip: %w", opened.err)
		}
	})
	return opened.z, opened.err
}

var opened struct {
	sync.Once
	z   *zip.Reader
	err error
}

// Sizes are the lengths in bytes of all modules' texts. Nothing is decompressed.
func Sizes() (sizes []int, err error) {
	z, err := archive()
	if err != nil {
		return nil, err
	}
	for _, f := range z.File {
		sizes = append(sizes, int(f.UncompressedSize64))
	}
	return sizes, nil
}

// Model is the module whose text resembles that of n most, for compression; ok is false for modules that are deflated
// alone. Models have models too; each chain ends with the sum of float32 of the same source.
func (n Name) Model() (m Name, ok bool) {
	if n.Type == "" {
		return n, false
	}
	for m, ok = n.plainer(); ok && !known()[m]; m, ok = m.plainer() {
	}
	return m, ok
}

// likeOp and likeType lead from an operator or a type to the one with the most similar text.
var (
	likeOp = map[string]string{"prod": "sum", "min": "sum", "max": "min", "premulsum": "prod", "bitand": "prod",
		"bitor": "bitand", "bitxor": "bitor"}

	likeType = map[string]string{"uint8": "int8", "int8": "int32", "uint32": "int32", "int32": "float32",
		"uint64": "int64", "int64": "float64",
		"float64": "float32", "float16": "float32", "bfloat16": "float16", "float8e4m3": "float16",
		"float8e5m2": "float8e4m3"}
)

// plainer is a candidate for Model, one step nearer to the sum of float32; there may be no such module.
func (n Name) plainer() (m Name, ok bool) {
	least := 70
	if n.Source == Bulk.Source {
		least = Bulk.SM
	}
	m = n
	switch op, t := likeOp[n.Op], likeType[n.Type]; {
	case op != "":
		m.Op = op
	case n.Ranks > 0:
		m.Ranks = 0
	case n.SM > least:
		m.SM = least
	case t != "":
		m.Type = t
	default:
		return n, false
	}
	return m, true
}

// known is the set of All.
var known = sync.OnceValue(func() map[Name]bool {
	all := map[Name]bool{}
	for _, n := range All() {
		all[n] = true
	}
	return all
})

// Like is the compression method of texts with a Model. Texts are deflated in parts of PartBytes, each with a
// Dictionary of its own, since deflate looks back 32 KiB and texts are longer. This halves the archive.
const (
	Like      = 0x5259
	PartBytes = 8 << 10

	modelBytes = 20 << 10 // of a Dictionary: the model's
	window     = 32 << 10 // how far deflate looks back
)

// Dictionary is the deflate dictionary for the part that follows the bytes before in a text of size bytes: the end of
// before, and the model's text around the same place.
func Dictionary(model, before []byte, size int) []byte {
	middle := (len(before) + min(PartBytes, size-len(before))/2) * len(model) / size
	from := max(0, min(middle-modelBytes/2, len(model)-modelBytes))
	near := model[from:min(len(model), from+modelBytes)]
	own := before[max(0, len(before)-(window-PartBytes-len(near))):]
	return slices.Concat(own, near)
}

// Read is the text of a module in an archive; fs.ErrNotExist if the archive has none.
func Read(z *zip.Reader, n Name) (text []byte, err error) {
	return read(z, n, func(m Name) ([]byte, error) { return Read(z, m) })
}

// read is Read with the models' texts from elsewhere.
func read(z *zip.Reader, n Name, model func(Name) ([]byte, error)) (text []byte, err error) {
	file := n.String() + ".ptx"
	at := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == file })
	if at < 0 {
		return nil, fs.ErrNotExist
	}
	f := z.File[at]
	if f.Method == Like {
		m, _ := n.Model()
		like, err := model(m)
		if err != nil {
			return nil, err
		}
		return readLike(f, like)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text = make([]byte, f.UncompressedSize64)
	_, err = io.ReadFull(r, text)
	return text, err
}

// readLike is Read for a text with a model.
func readLike(f *zip.File, model []byte) (text []byte, err error) {
	raw, err := f.OpenRaw()
	if err != nil {
		return nil, err
	}
	r, size := bufio.NewReader(raw), int(f.UncompressedSize64)
	inflater := flate.NewReader(r)
	for len(text) < size {
		if err := inflater.(flate.Resetter).Reset(r, Dictionary(model, text, size)); err != nil {
			return nil, err
		}
		part, err := io.ReadAll(inflater)
		if err != nil {
			return nil, err
		}
		if len(part) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		text = append(text, part...)
	}
	if crc32.ChecksumIEEE(text) != f.CRC32 {
		return nil, zip.ErrChecksum
	}
	return text, nil
}
