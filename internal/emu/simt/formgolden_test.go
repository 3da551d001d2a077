package simt_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A golden file holds the results of a family: lines of a header that begin
// with #, and for each form a line with its id, the number of cases and a checksum of
// their operands, followed by the results, little endian, each as wide as
// its type, a predicate in a byte.

// goldens are the results of forms by id.
type goldens struct {
	header  []string
	results map[string][][]uint64
}

func goldenFile(dir, family string) string { return filepath.Join(dir, family+".gz") }

// width is how many bytes of a result are kept: 8-bit integers are in registers of 16 bits.
func (o *operand) width() int { return max(o.typ.Size(), min(2, o.typ.Bits()/4)) }

func sum(rows [][]uint64) uint32 {
	var b []byte
	for _, row := range rows {
		for _, v := range row {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return crc32.ChecksumIEEE(b)
}

// writeGoldens writes the results of forms; those that are nil are left out.
func writeGoldens(dir, family string, header []string, list []form, results [][][]uint64) error {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	for _, line := range header {
		fmt.Fprintf(z, "# %s\n", line)
	}
	for i := range list {
		f := &list[i]
		if results[i] == nil {
			continue
		}
		fmt.Fprintf(z, "%s: %d %08x\n", f.id(), len(results[i]), sum(cases(f)))
		for k, o := range f.dst { // column by column, which compresses better
			for shift := range o.width() {
				for _, row := range results[i] {
					z.Write([]byte{uint8(row[k] >> (8 * shift))})
				}
			}
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(goldenFile(dir, family), b.Bytes(), 0o644)
}

// readGoldens reads the results of a family.
func readGoldens(dir, family string) (*goldens, error) {
	text, err := os.ReadFile(goldenFile(dir, family))
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r := bufio.NewReader(z)
	g := &goldens{results: map[string][][]uint64{}}
	byID := map[string]form{}
	for _, f := range forms(family) {
		byID[f.id()] = f
	}
	for {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			return g, nil
		}
		if err != nil {
			return nil, err
		}
		if header, ok := strings.CutPrefix(line, "# "); ok {
			g.header = append(g.header, strings.TrimSpace(header))
			continue
		}
		id, rest, _ := strings.Cut(line, ": ")
		var n int
		var crc uint32
		if _, err := fmt.Sscanf(rest, "%d %x", &n, &crc); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		f, ok := byID[id]
		if !ok {
			return nil, fmt.Errorf("%s is no longer a form: record again", id)
		}
		results := make([][]uint64, n)
		for i := range results {
			results[i] = make([]uint64, len(f.dst))
		}
		for k, o := range f.dst {
			column := make([]byte, n)
			for shift := range o.width() {
				if _, err := io.ReadFull(r, column); err != nil {
					return nil, err
				}
				for i, b := range column {
					results[i][k] |= uint64(b) << (8 * shift)
				}
			}
		}
		if crc == sum(cases(&f)) { // otherwise the cases have changed
			g.results[id] = results
		}
	}
}
