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
)

// The libraries that are put in front of a program: Ringo's NCCL, the one that counts calls, and a kit's driver.
const ncclFile, countFile, driverFile = "libnccl.so.2", "libringo-count.so", "libcuda.so.1"

// findNCCL returns the absolute path of Ringo's libnccl.so.2: given, or what the sources build, or one beside the
// command or in a folder build.
func findNCCL(ctx context.Context, given string, stderr io.Writer) (string, error) {
	if given != "" {
		if !isFile(given) {
			return "", fmt.Errorf("-nccl %s: no such file: scripts/libnccl builds it (Go and gcc)", given)
		}
		if err := strange(given); errors.Is(err, errOther) {
			fmt.Fprintf(stderr, "ringo: -nccl %v\n", err)
		}
		return filepath.Abs(given)
	}
	libraries, why := built(ctx, "libnccl", stderr)
	if !errors.Is(why, errNotHere) {
		return filepath.Join(libraries, ncclFile), why
	}
	for _, place := range placesOf("build") {
		file := filepath.Join(place, ncclFile)
		if !isFile(file) {
			continue
		}
		err := strange(file)
		if err == nil {
			return filepath.Abs(file)
		}
		why = fmt.Errorf("%w; %w", why, err)
	}
	return "", fmt.Errorf("%s is %w; -nccl FILE says where it is", ncclFile, why)
}

// findKit returns the absolute path of the folder with a kit's libraries: lib64 of given, or what the sources build, or
// lib64 of a kit beside the command or in build/cuda.
func findKit(ctx context.Context, given string, stderr io.Writer) (string, error) {
	if given != "" {
		libraries := filepath.Join(given, "lib64")
		if !isFile(filepath.Join(libraries, driverFile)) {
			return "", fmt.Errorf("-kit %s: no lib64/%s in it: scripts/cuda-kit builds it (Go and gcc)", given, driverFile)
		}
		if err := strange(filepath.Join(libraries, ncclFile)); errors.Is(err, errOther) {
			fmt.Fprintf(stderr, "ringo: -kit %v\n", err)
		}
		return filepath.Abs(libraries)
	}
	libraries, why := built(ctx, "cuda-kit", stderr)
	if !errors.Is(why, errNotHere) {
		return libraries, why
	}
	for _, place := range placesOf(filepath.Join("build", "cuda")) {
		libraries := filepath.Join(place, "lib64")
		if !isFile(filepath.Join(libraries, driverFile)) {
			continue
		}
		err := strange(filepath.Join(libraries, ncclFile))
		if err == nil {
			return filepath.Abs(libraries)
		}
		why = fmt.Errorf("%w; %w", why, err)
	}
	return "", fmt.Errorf("the kit of emulated GPUs is %w; -kit FOLDER says where it is", why)
}

// errNotHere is that there are no sources, or not the tools to build them.
var errNotHere = errors.New("not here")

// built returns the folder with the libraries that a script of Ringo's sources builds, as the sources are now.
func built(ctx context.Context, script string, stderr io.Writer) (libraries string, err error) {
	tree := sources()
	if tree == "" {
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

// sources returns the folder of Ringo's sources: above the command, or the working directory or above; "" for none.
func sources() string {
	for _, place := range placesOf("") {
		if info, err := os.Stat(filepath.Join(place, "scripts", "libnccl")); err == nil && info.Mode().IsRegular() {
			return place
		}
	}
	return ""
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
		if dir, err = os.MkdirTemp(temporary, "ringo-"); err != nil {
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
func temporary(name string) (string, error) {
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return "", fmt.Errorf("%w: set TMPDIR to a folder that can be written", err)
	}
	return dir, nil
}

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
