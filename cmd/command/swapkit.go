package command

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/libnccl/kit"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/trusted"
)

// The libraries that are put in front of a program: Ringo's NCCL, the one that counts calls, and a kit's driver.
const ncclFile, countFile, driverFile = "libnccl.so.2", "libringo-count.so", "libcuda.so.1"

// findNCCL returns the absolute path of Ringo's libnccl.so.2: given, or what the sources build, or one beside the
// command or in a folder build.
func findNCCL(ctx context.Context, given string, stderr io.Writer) (string, error) {
	if given != "" {
		if !isFile(given) {
			return "", cli.Usagef("-nccl %s: no such file: scripts/libnccl builds it (Go and gcc)", given)
		}
		warn(stderr, "-nccl", given, given)
		return filepath.Abs(given)
	}
	libraries, why := built(ctx, "libnccl", stderr)
	if !errors.Is(why, errNotHere) {
		return filepath.Join(libraries, ncclFile), why
	}
	file, why := first(why, placesOf("build"), ncclFile, ncclFile)
	if why != nil {
		return "", fmt.Errorf("%s is %w; -nccl FILE says where it is", ncclFile, why)
	}
	return filepath.Abs(file)
}

// findKit returns the absolute path of the folder with a kit's libraries: lib64 of given, or what the sources build, or
// lib64 of a kit beside the command or in build/cuda.
func findKit(ctx context.Context, given string, stderr io.Writer) (string, error) {
	if given != "" {
		libraries := filepath.Join(given, "lib64")
		if !isFile(filepath.Join(libraries, driverFile)) {
			return "", cli.Usagef("-kit %s: no lib64/%s in it: scripts/cuda-kit builds it (Go and gcc)", given, driverFile)
		}
		warn(stderr, "-kit", given, filepath.Join(libraries, ncclFile))
		return filepath.Abs(libraries)
	}
	libraries, why := built(ctx, "cuda-kit", stderr)
	if !errors.Is(why, errNotHere) {
		return libraries, why
	}
	file, why := first(why, placesOf(filepath.Join("build", "cuda")), filepath.Join("lib64", driverFile),
		filepath.Join("lib64", ncclFile))
	if why != nil {
		return "", fmt.Errorf("the kit of emulated GPUs is %w; -kit FOLDER says where it is", why)
	}
	return filepath.Abs(filepath.Dir(file))
}

// warn tells of a library that a flag names, and that is used for this reason alone.
func warn(stderr io.Writer, flag, given, library string) {
	if err := strange(library); errors.Is(err, errOther) {
		fmt.Fprintf(stderr, "ringo: %s %v\n", flag, err)
	}
	if err := trusted.Paths(given); err != nil {
		fmt.Fprintf(stderr, "ringo: %s names what others can change: %v\n", flag, err)
	}
}

// first returns the first file of a name in some places that nobody else can change and whose library is of the
// command's version. Without one the error is why, and what is wrong with those that are there.
func first(why error, places []string, name, library string) (string, error) {
	for _, place := range places {
		file := filepath.Join(place, name)
		if !isFile(file) {
			continue
		}
		err := trusted.Paths(file, filepath.Join(place, library))
		if err == nil {
			err = strange(filepath.Join(place, library))
		}
		if err == nil {
			return file, nil
		}
		why = fmt.Errorf("%w; %w", why, err)
	}
	return "", why
}

// errNotHere is that there are no sources, or not the tools to build them.
var errNotHere = errors.New("not here")

// built returns the folder with the libraries that a script of Ringo's sources builds, as the sources are now.
func built(ctx context.Context, script string, stderr io.Writer) (libraries string, err error) {
	tree, refused := sources(script)
	if tree == "" {
		if refused != nil {
			return "", fmt.Errorf("%w: %w", errNotHere, refused)
		}
		return "", fmt.Errorf("%w: scripts/%s of Ringo's sources builds it (Go and gcc)", errNotHere, script)
	}
	if err := kit.Buildable(); err != nil {
		return "", fmt.Errorf("%w, and %s builds it by Go and gcc: %w", errNotHere, filepath.Join(tree, "scripts", script),
			err)
	}
	folder, err := kit.Folder(tree)
	if err != nil {
		return "", err
	}
	unlock, err := kit.Lock(ctx, folder)
	if err != nil {
		return "", err
	}
	defer unlock()
	libraries = filepath.Join(folder, "lib64")
	if !isFile(filepath.Join(libraries, ncclFile)) {
		fmt.Fprintf(stderr, "ringo: building %s\n", libraries)
	}
	return libraries, kit.Build(ctx, tree, script, folder)
}

// sources returns the folder of Ringo's sources: above the command, or the working directory or above; "" for none. The
// error says which sources are left out, since others can change them.
func sources(script string) (tree string, refused error) {
	for _, place := range placesOf("") {
		file := filepath.Join(place, "scripts", "libnccl")
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		err := trusted.Paths(file, filepath.Join(place, "scripts", script))
		if err == nil {
			err = trusted.Tree(place, ".git", "build")
		}
		if err == nil {
			return place, nil
		}
		if refused == nil {
			refused = err
		}
	}
	return "", refused
}

// placesOf are the folders in which a part of ringo may lie: the command's folder and the one above, then the folder
// of that name in the working directory and in each folder above.
func placesOf(name string) (places []string) {
	if own, err := os.Executable(); err == nil {
		places = append(places, filepath.Dir(own), filepath.Dir(filepath.Dir(own)))
	}
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			places = append(places, filepath.Join(dir, name))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return places
}

// forLoader returns a name of a folder that the system's loader takes whole, and what takes it away. In LD_PRELOAD and
// LD_LIBRARY_PATH spaces, colons and semicolons end a name, and dollars begin a variable: a folder whose name has one
// gets a link among temporary files.
func forLoader(folder string) (name string, remove func(), err error) {
	const special = " \t\n:;$"
	if !strings.ContainsAny(folder, special) {
		return folder, func() {}, nil
	}
	for _, temporary := range []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} {
		dir := ""
		if strings.ContainsAny(temporary, special) {
			continue
		}
		if dir, err = trusted.MkdirTemp(temporary, "ringo-"); err != nil {
			continue
		}
		name = filepath.Join(dir, "lib")
		if err = os.Symlink(folder, name); err == nil {
			return name, func() { os.RemoveAll(dir) }, nil
		}
		os.RemoveAll(dir)
	}
	return "", nil, fmt.Errorf("the system's loader cannot be given the folder %q, whose name has a space, a colon, a "+
		"semicolon or a dollar, and no temporary folder takes a link to it: set TMPDIR to one: %w", folder, err)
}

// temporary makes a folder for temporary files.
func temporary(name string) (string, error) { return trusted.MkdirTemp("", name) }

func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// errOther is that a library is of another version than the command.
var errOther = errors.New("not of this command's version")

// strange returns an error if a libnccl.so.2 is not of the command's version, and of its commit where both tell theirs.
// The version stands in a line of the library's log.
func strange(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, rest, ok := bytes.Cut(text, []byte(", which is Ringo "))
	version, _, _ := bytes.Cut(rest[:min(len(rest), 80)], []byte(" "))
	if !ok {
		return fmt.Errorf("%s does not tell its version, which has to be Ringo %s", file, ringo.Version)
	}
	if string(version) != ringo.Version {
		return fmt.Errorf("%s is %w: of Ringo %s, and ringo of %s", file, errOther, version, ringo.Version)
	}
	own, _ := debug.ReadBuildInfo()
	if its, err := buildinfo.ReadFile(file); err == nil && own != nil {
		if a, b := commit(its), commit(own); a != b && a != "" && b != "" {
			return fmt.Errorf("%s is %w: of commit %s, and ringo of %s", file, errOther, a, b)
		}
	}
	return nil
}

// commit is what a program was built from, "" if it does not tell.
func commit(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
