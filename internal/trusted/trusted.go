// Package trusted says whether only this user and root can change what lies at a path. Whatever is run, preloaded or
// loaded without having been named by the user has to be so.
package trusted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Error says which file or folder, on the way to a path, others can change.
type Error struct{ Path, At, Why string }

func (e *Error) Error() string {
	if e.At == e.Path {
		return fmt.Sprintf("%s %s", e.At, e.Why)
	}
	return fmt.Sprintf("%s is not used, for %s %s", e.Path, e.At, e.Why)
}

// Paths returns an *Error if others than this user and root can change what lies at one of paths. A path, all folders
// above it, and what symbolic links among them lead to have to belong to this user or root, and nobody else may write
// there. A folder in which all may write and each removes only what is his, such as /tmp, may stand above others. A
// group may write that has no other members by /etc/group and /etc/passwd, if there is no ACL. Where files have no
// owners in this sense, as on Windows, nothing is checked.
func Paths(paths ...string) error {
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err == nil {
			err = system().walk(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Tree is Paths for a folder and all that lies in it, but for folders of the names without. Programs are built from it.
func Tree(folder string, without ...string) error {
	w := system()
	if err := Paths(folder); err != nil || w.stat == nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(without, e.Name()):
			return fs.SkipDir
		case e.Type()&fs.ModeSymlink != 0:
			return w.walk(path)
		}
		f, err := w.stat(path)
		if err != nil {
			return err
		}
		if why := w.wrong(path, f, true); why != "" {
			return &Error{folder, path, why}
		}
		return nil
	})
}

// A file is what the rule asks of a file or folder.
type file struct {
	mode         fs.FileMode
	owner, group int
}

// A world is where paths are looked up: the system, or a test's.
type world struct {
	user  int
	stat  func(name string) (file, error) // of a symbolic link itself
	link  func(name string) (string, error)
	alone func(name string, group int) bool // nobody but the user and root is in the group, and a file has no ACL
	name  func(user int) string
}

const mostLinks = 40 // as the kernel follows

// walk applies the rule to a path, element by element.
func (w *world) walk(path string) error {
	if w.stat == nil {
		return nil
	}
	at, rest, links := string(filepath.Separator), elements(path), 0
	for {
		f, err := w.stat(at)
		if err != nil {
			return err
		}
		if f.mode&fs.ModeSymlink != 0 {
			target, err := w.link(at)
			if links++; err == nil && links > mostLinks {
				err = &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
			}
			if err != nil {
				return err
			}
			if why := w.owned(at, f); why != "" {
				return &Error{path, at, why}
			}
			rest, at = append(elements(target), rest...), filepath.Dir(at)
			if filepath.IsAbs(target) {
				at = string(filepath.Separator)
			}
		} else if why := w.wrong(at, f, len(rest) == 0); why != "" {
			return &Error{path, at, why}
		}
		if len(rest) == 0 {
			return nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

// elements are the names that a path is made of.
func elements(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

// wrong is why others can change a file, or put another in its place; "" if they cannot. last is the end of a path.
func (w *world) wrong(name string, f file, last bool) string {
	if why := w.owned(name, f); why != "" {
		return why
	}
	if f.mode.IsDir() && f.mode&fs.ModeSticky != 0 && !last { // what others leave there has their owner
		return ""
	}
	if f.mode&0o002 != 0 || f.mode&0o020 != 0 && !w.alone(name, f.group) {
		return fmt.Sprintf("may be written by other users (%v): if it should not, chmod go-w", f.mode)
	}
	return ""
}

// owned is why a file's owner can change it for this user. In a user namespace the system's root has another number:
// who has / and, right below it, folders such as /tmp, is root there.
func (w *world) owned(name string, f file) string {
	if f.owner == w.user || f.owner == 0 {
		return ""
	}
	const top = string(filepath.Separator)
	if root, err := w.stat(top); err == nil && f.owner == root.owner &&
		(name == top || filepath.Dir(name) == top && f.mode.IsDir() && f.mode&fs.ModeSticky != 0) {
		return ""
	}
	if w.user == 0 {
		return fmt.Sprintf("belongs to %s, and not to root", w.name(f.owner))
	}
	return fmt.Sprintf("belongs to %s, neither to %s nor to root", w.name(f.owner), w.name(w.user))
}

// Cache returns the folder of a name below ringo in the user's cache, and makes it. Where that cannot be written, or
// others can write to it, the folder lies among temporary files and has the user's number in its name.
func Cache(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "ringo", name)
		err = private(cache, os.MkdirAll)
	}
	if err == nil {
		return cache, nil
	}
	temporary := filepath.Join(os.TempDir(), fmt.Sprintf("ringo-%s-%d", name, os.Getuid()))
	if e := private(temporary, os.Mkdir); e != nil {
		return "", fmt.Errorf("%w; %w: set XDG_CACHE_HOME or TMPDIR to a folder that you alone can write to", err, e)
	}
	return temporary, nil
}

// private makes a folder, and returns an error if others can change it or this process cannot.
func private(folder string, mkdir func(string, fs.FileMode) error) error {
	if err := mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := Paths(folder); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, ".try")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// MkdirTemp is os.MkdirTemp, and an error if others can change what lies there, or move it away.
func MkdirTemp(folder, pattern string) (string, error) {
	dir, err := os.MkdirTemp(folder, pattern)
	if err == nil {
		if err = Paths(dir); err == nil {
			return dir, nil
		}
		os.Remove(dir)
	}
	return "", fmt.Errorf("%w: set TMPDIR to a folder that you alone can write to, or one like /tmp", err)
}
