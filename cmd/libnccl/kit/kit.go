// Package kit builds the C libraries of a tree of sources into the user's cache, never into the tree. Go's own cache
// decides what has to be built anew. The folders have the layout of scripts/cuda-kit, one for each tree and set of Go's
// variables; one that was not used for two weeks is removed. It is for ringo swap, ringo emulate and tests, and nothing
// here is promised to other modules.
package kit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringo-go/ringo/internal/trusted"
)

// Folder returns the folder for what the sources in tree build, and makes it. Where the user's cache cannot be written,
// or others can write to it, the folder lies among temporary files.
func Folder(tree string) (string, error) {
	key, err := filepath.EvalSymlinks(tree)
	if err == nil {
		key, err = filepath.Abs(key)
	}
	if err != nil {
		return "", err
	}
	for _, name := range []string{"GOFLAGS", "GOARCH", "GOAMD64", "GOEXPERIMENT", "GOTOOLCHAIN", "CC", "CGO_CFLAGS",
		"CGO_LDFLAGS"} {
		key += "\x00" + os.Getenv(name)
	}
	all, err := trusted.Cache("kits")
	if err != nil {
		return "", err
	}
	folder := filepath.Join(all, fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:16])
	if err := os.MkdirAll(filepath.Join(folder, "lib64"), 0o700); err != nil {
		return "", err
	}
	now := time.Now()
	removeOld(all, now.Add(-14*24*time.Hour))
	return folder, os.Chtimes(folder, now, now)
}

// removeOld removes the folders that were last used before a time.
func removeOld(all string, before time.Time) {
	folders, _ := os.ReadDir(all)
	for _, f := range folders {
		if info, err := f.Info(); err == nil && f.IsDir() && info.ModTime().Before(before) {
			os.RemoveAll(filepath.Join(all, f.Name()))
		}
	}
}

// Lock waits until no other process changes a folder.
func Lock(ctx context.Context, folder string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		free, err := lock(f)
		if err == nil && !free {
			select {
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return func() { f.Close() }, nil
	}
}

// Build runs a script of a tree, such as "libnccl", whose result gets into the folder. The caller holds the lock.
func Build(ctx context.Context, tree, script, folder string) error {
	out := folder
	if library, ok := map[string]string{"libnccl": "libnccl.so.2", "libcuda": "libcuda.so.1"}[script]; ok {
		out = filepath.Join(folder, "lib64", library)
	}
	script = filepath.Join(tree, "scripts", script)
	cmd := exec.CommandContext(ctx, "bash", script, out)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", script, errors.Join(err, context.Cause(ctx)), strings.TrimSpace(text.String()))
	}
	return nil
}

// Buildable returns an error if a tool is missing that the scripts use.
func Buildable() error {
	for _, tool := range []string{"go", "gcc", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	return nil
}
