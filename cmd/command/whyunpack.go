package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

// An unpacker writes the files of archives, and standard input, into a folder of its own, up to limits.
type unpacker struct {
	dir   string
	bytes int64                  // how many more it may write
	files int                    // how many more it may make
	seen  int                    // how many files it has found in folders
	old   func(file string) bool // files to leave out; nil for none
}

const (
	mostUnpacked = 4 << 30
	mostFiles    = 1 << 17
	mostNested   = 3  // a tar in a gzip, whose files are gzips
	mostDeep     = 16 // folders in folders
)

var errUnpack = errors.New("it unpacks to more than is read")

func newUnpacker() (*unpacker, error) {
	dir, err := temporary("ringo-why-")
	if err != nil {
		return nil, err
	}
	return &unpacker{dir: dir + string(filepath.Separator), bytes: mostUnpacked, files: mostFiles}, nil
}

func (u *unpacker) isOld(file string) bool { return u.old != nil && u.old(file) }

// has reports whether the unpacker has made this file.
func (u *unpacker) has(file string) bool { return strings.HasPrefix(file, u.dir) }

func (u *unpacker) close() { os.RemoveAll(u.dir) }

// packed reports whether a file that begins with head is a gzip or a tar.
func packed(head []byte) (zip, tape bool) {
	return bytes.HasPrefix(head, []byte{0x1f, 0x8b}), len(head) > 262 && string(head[257:262]) == "ustar"
}

// open returns the files in an archive, unpacked; of another file the file itself.
func (u *unpacker) open(file string, depth int) ([]string, error) {
	zip, tape := packed(headOf(file))
	if !zip && !tape {
		return []string{file}, nil
	}
	wrong := func(err error) error { return fmt.Errorf("%s: %w", file, err) }
	if depth == mostNested {
		return nil, wrong(errors.New("an archive in an archive in an archive"))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if tape {
		files, err := u.tape(f, depth)
		if err != nil {
			return files, wrong(err)
		}
		return files, nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, wrong(err)
	}
	name, at := strings.TrimSuffix(filepath.Base(file), ".gz"), z.ModTime
	if info, err := f.Stat(); err == nil && at.IsZero() {
		at = info.ModTime()
	}
	one, err := u.put(name, filepath.Dir(file), at, z, mostUnpacked)
	if err != nil {
		return nil, wrong(err)
	}
	return u.open(one, depth+1)
}

// tape unpacks the regular files of a tar, without their folders. With an error it returns the files before it too.
func (u *unpacker) tape(r io.Reader, depth int) (files []string, err error) {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return files, nil
		case err != nil:
			return files, err
		case h.Typeflag != tar.TypeReg:
			continue
		}
		name := path.Clean("/" + strings.ReplaceAll(h.Name, `\`, "/"))
		one, err := u.put(path.Base(name), path.Dir(name), h.ModTime, t, given.Most)
		if err != nil {
			return files, err
		}
		more, err := u.open(one, depth+1)
		if files = append(files, more...); err != nil {
			return files, err
		}
	}
}

// put writes a file of at most most bytes, of the time at. Each file has a folder of its own, as files of several
// folders may share a name. Of the folder of where it comes from the attempt is kept.
func (u *unpacker) put(name, from string, at time.Time, r io.Reader, most int64) (string, error) {
	if u.files--; u.files < 0 {
		return "", errUnpack
	}
	kept := ""
	if n := hang.AttemptOf(from); n >= 0 {
		kept = fmt.Sprintf("attempt_%d.", n)
	}
	dir, err := os.MkdirTemp(u.dir, kept)
	if err != nil {
		return "", err
	}
	if name = strings.ReplaceAll(given.Printable(name), "/", "_"); name == "_" || name == "." || name == "" {
		name = "file"
	}
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	n, err := io.Copy(f, io.LimitReader(r, min(u.bytes, most)+1))
	if err == nil && n > min(u.bytes, most) {
		err = errUnpack
	}
	u.bytes -= n
	if err = errors.Join(err, f.Close()); at.Unix() > 0 {
		err = errors.Join(err, os.Chtimes(f.Name(), at, at))
	}
	return f.Name(), err
}

// A foundFile is a file that the words of a command line mean: one of them names it, or a folder or archive that they
// name has it.
type foundFile struct {
	path  string
	named bool
}

// find returns the files that the words of a command line mean: "-" is standard input, a pattern is the files that
// match, a folder or an archive is its files. Old files are left out.
func (u *unpacker) find(words []string, stdin io.Reader) (files []foundFile, wrong []error) {
	add := func(path string, named bool) {
		more, err := u.open(path, 0)
		for _, one := range more {
			files = append(files, foundFile{one, named})
		}
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, word := range words {
		if word == "-" {
			one, err := u.put("stdin", "", time.Time{}, stdin, mostUnpacked)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("standard input: %w", err))
				continue
			}
			add(one, true)
			continue
		}
		all := []string{word}
		if _, err := os.Lstat(word); err != nil {
			if some, _ := filepath.Glob(word); len(some) > 0 {
				all = some
			}
		}
		for _, name := range all {
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				inside, more := u.tree(name, 1)
				wrong = append(wrong, more...)
				for _, path := range inside {
					add(path, false)
				}
			} else if !u.isOld(name) {
				add(name, true)
			}
		}
	}
	return files, wrong
}

// tree returns the files in a folder and in the folders in it, which links do not count as.
func (u *unpacker) tree(dir string, depth int) (files []string, wrong []error) {
	if depth > mostDeep {
		return nil, []error{fmt.Errorf("%s: more than %d folders in each other: what is below is not read", dir, mostDeep)}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, []error{err}
	}
	for _, e := range list {
		name := filepath.Join(dir, e.Name())
		if e.IsDir() {
			more, errs := u.tree(name, depth+1)
			files, wrong = append(files, more...), append(wrong, errs...)
			continue
		}
		if u.isOld(name) {
			continue
		}
		if u.seen++; u.seen > mostFiles {
			if u.seen == mostFiles+1 {
				wrong = append(wrong, fmt.Errorf("%s: more than %d files: the others are not read", dir, mostFiles))
			}
			break
		}
		files = append(files, name)
	}
	return files, wrong
}
