// Command gen compiles play/wasm into module.wasm.gz, for "go generate". It does nothing if the
// module was made of the same source, comments aside: another version of Go makes other bytes,
// but the same page.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	source = "github.com/ringo-go/ringo/cmd/play/wasm"
	file   = "module.wasm.gz"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	hash, err := hashOf(source)
	if err != nil {
		log.Fatal(err)
	}
	if there(hash) {
		return
	}
	if err := build(hash); err != nil {
		log.Fatal(err)
	}
}

// there reports whether the module was made of the source with this hash.
func there(hash string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	return err == nil && strings.HasSuffix(z.Comment, hash)
}

func build(hash string) error {
	dir, err := os.MkdirTemp("", "gen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "module.wasm")
	// Without inlining the module is smaller, and a page needs no speed.
	build := goCommand("build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-gcflags=all=-l", "-ldflags=-s -w",
		"-o", out, source)
	if err := build.Run(); err != nil {
		return fmt.Errorf("%v: %w", build, err)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	z.Comment = runtime.Version() + ", source " + hash
	_, err = z.Write(module)
	return errors.Join(err, z.Close(), os.WriteFile(file, b.Bytes(), 0o644))
}

func goCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	cmd.Stderr = os.Stderr
	return cmd
}

// hashOf is a hash of the program's packages in this Go module, comments aside.
func hashOf(program string) (string, error) {
	list := goCommand("list", "-deps", "-json=ImportPath,Dir,GoFiles,Module", program)
	text, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w", list, err)
	}
	all := sha256.New()
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			Module          *struct{ Main bool }
		}
		if err := d.Decode(&p); err == io.EOF {
			return fmt.Sprintf("%x", all.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		for _, name := range p.GoFiles {
			src, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return "", err
			}
			fmt.Fprintln(all, p.ImportPath, name)
			writeWords(all, src)
		}
	}
}

// writeWords writes the tokens of a file, and of its comments only the directives //go:.
func writeWords(w io.Writer, src []byte) {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(src)), src, nil, scanner.ScanComments)
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return
		case tok == token.COMMENT && !strings.HasPrefix(text, "//go:"):
		default:
			fmt.Fprintln(w, tok, text)
		}
	}
}
