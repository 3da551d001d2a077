// Command gen compiles kernels/cuda to PTX with clang, which needs no CUDA
// toolkit for it. go generate runs it in kernels/ptx. Compiling takes minutes, so gen does
// nothing if modules.zip was made from the same sources, comments included, with the same
// flags; with -all it always compiles.
//
//	gen -clang clang++-19 -src ../cuda -out . [-all] [-texts DIR]
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/kernels/ptx"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	clang := flag.String("clang", "clang++-19", "compiler; other versions than 19 give other texts")
	src := flag.String("src", "../cuda", "folder of the sources")
	out := flag.String("out", ".", "folder of modules.zip")
	dir := flag.String("texts", "", "folder to write the .ptx files to as well, to read them")
	anew := flag.Bool("all", false, "compile all, whatever modules.zip says")
	flag.Parse()
	file := filepath.Join(*out, "modules.zip")
	sum, err := sources(*src, ptx.All())
	if err == nil && !*anew && *dir == "" && madeFrom(file) == sum {
		return
	}
	var texts [][]byte
	if err == nil {
		texts, err = generate(*clang, *src, ptx.All())
	}
	if err == nil {
		err = archive(file, ptx.All(), texts, sum)
	}
	for i, n := range ptx.All() {
		if err == nil && *dir != "" {
			err = os.WriteFile(filepath.Join(*dir, n.String()+".ptx"), texts[i], 0o644)
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// sources is the checksum of all that modules are made from: the files of a folder, and the compiler's flags.
func sources(src string, all []ptx.Name) (string, error) {
	files, err := filepath.Glob(filepath.Join(src, "*.*"))
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(file), len(text), text)
	}
	for _, n := range all {
		fmt.Fprintln(h, n, head(n), flags(n))
	}
	return fmt.Sprintf("sources %x", h.Sum(nil)), nil
}

// madeFrom is the checksum of the sources that an archive was made from; "" if it is unknown.
func madeFrom(file string) string {
	z, err := zip.OpenReader(file)
	if err != nil {
		return ""
	}
	defer z.Close()
	return z.Comment
}

// generate compiles modules.
func generate(clang, src string, all []ptx.Name) ([][]byte, error) {
	if _, err := exec.LookPath(clang); err != nil {
		return nil, fmt.Errorf("%w: install Debian's clang-19 (apt-get install clang-19) or name another with -clang", err)
	}
	texts := make([][]byte, len(all))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, n := range all {
		g.Go(func() (err error) {
			texts[i], err = compile(clang, src, n)
			return err
		})
	}
	return texts, g.Wait()
}

// flags are the compiler's flags for a module. Products and sums are not contracted, and signed integers wrap.
func flags(n ptx.Name) []string {
	args := []string{"-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=" + n.Target(),
		"-nocudainc", "-nocudalib", "-std=c++17", "-O3", "-S", "-Wall", "-Wextra", "-Werror",
		"-ffp-contract=off", "-fwrapv", "-fno-operator-names",
		"-Xclang", "-target-feature", "-Xclang", fmt.Sprintf("+ptx%d", n.Version()),
		fmt.Sprintf("-DSM=%d", n.SM), "-o", "-", n.File()}
	if n.Type != "" {
		args = append(args, "-DTYPE="+n.Type, "-DOP="+n.Op)
	}
	if n.Ranks > 0 {
		args = append(args, fmt.Sprintf("-DRANKS=%d", n.Ranks))
	}
	return args
}

// head is the first line of a module.
func head(n ptx.Name) string {
	if n.Source != "" {
		return fmt.Sprintf("// %s for %s and newer: kernels/cuda/%s, compiled by kernels/ptx/gen.\n\n", n.Run(), n.Target(),
			n.File())
	}
	return fmt.Sprintf("// %s of %s for %s and newer: kernels/cuda, compiled by kernels/ptx/gen.\n\n", n.Op,
		n.Type, n.Target())
}

// compile is the PTX of a module.
func compile(clang, src string, n ptx.Name) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	c := exec.Command(clang, flags(n)...)
	c.Dir, c.Stdout, c.Stderr = src, &stdout, &stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("compile %v: %w\n%s", n, err, stderr.Bytes())
	}
	return append([]byte(head(n)), tidy(stdout.Bytes())...), nil
}

var (
	line  = regexp.MustCompile(`(?m)^[ \t]*(//.*)?\n`)
	after = regexp.MustCompile(`(?m)[ \t]+(//.*)?$`)
	first = regexp.MustCompile(`(?m)^[ \t]+`)
	space = regexp.MustCompile(`[ \t]+`)
)

// tidy takes out the compiler's comments, a fifth of the text, and spaces, shortens labels, and leaves an
// empty line before each kernel.
func tidy(text []byte) []byte {
	text = after.ReplaceAll(line.ReplaceAll(text, nil), nil)
	text = space.ReplaceAll(first.ReplaceAll(text, nil), []byte(" "))
	text = bytes.ReplaceAll(text, []byte("$L__BB"), []byte("$L"))
	return bytes.ReplaceAll(text, []byte(".visible"), []byte("\n.visible"))
}

// archive writes the texts to a file with the checksum of their sources. It leaves a file that holds the same texts
// alone, since another version of Go may compress differently.
func archive(name string, all []ptx.Name, texts [][]byte, sources string) error {
	if madeFrom(name) == sources && same(name, all, texts) {
		return nil
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := w.SetComment(sources); err != nil {
		return err
	}
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for i, n := range all {
		h := zip.FileHeader{Name: n.String() + ".ptx", Method: zip.Deflate}
		create, data := w.CreateHeader, texts[i]
		if m, ok := n.Model(); ok {
			if at := slices.Index(all, m); at >= 0 {
				create, data = w.CreateRaw, deflateLike(texts[at], texts[i])
				h.Method, h.CRC32 = ptx.Like, crc32.ChecksumIEEE(texts[i])
				h.CompressedSize64, h.UncompressedSize64 = uint64(len(data)), uint64(len(texts[i]))
			}
		}
		f, err := create(&h)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// deflateLike compresses a text with a model, see ptx.Like.
func deflateLike(model, text []byte) []byte {
	var b bytes.Buffer
	for at := 0; at < len(text); at += ptx.PartBytes {
		w, err := flate.NewWriterDict(&b, flate.BestCompression, ptx.Dictionary(model, text[:at], len(text)))
		if err == nil {
			_, err = w.Write(text[at:min(at+ptx.PartBytes, len(text))])
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			panic(err) // a write to memory does not fail
		}
	}
	return b.Bytes()
}

func same(name string, all []ptx.Name, texts [][]byte) bool {
	z, err := zip.OpenReader(name)
	if err != nil {
		return false
	}
	defer z.Close()
	if len(z.File) != len(all) {
		return false
	}
	for i, f := range z.File {
		text, err := ptx.Read(&z.Reader, all[i])
		if err != nil || f.Name != all[i].String()+".ptx" || !bytes.Equal(text, texts[i]) {
			return false
		}
	}
	return true
}
