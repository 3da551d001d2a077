package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/need"
)

// tree is sources of Ringo in which a script writes instead of building, and the working directory. Below it there are
// libraries of an earlier day.
func tree(t *testing.T) string {
	if runtime.GOOS != "linux" {
		t.Skip("LD_PRELOAD is Linux's")
	}
	need.Tool(t, "bash")
	need.Tool(t, "sh")
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	require.NoError(t, os.Mkdir("scripts", 0o755))
	require.NoError(t, os.WriteFile("scripts/libnccl", []byte("echo built >$1"), 0o755))
	require.NoError(t, os.WriteFile("scripts/cuda-kit", []byte("echo driver >$1/lib64/libcuda.so.1"), 0o755))
	require.NoError(t, os.MkdirAll("build/cuda/lib64", 0o755))
	for _, old := range []string{"build/libnccl.so.2", "build/cuda/lib64/libcuda.so.1", "build/cuda/lib64/libnccl.so.2"} {
		require.NoError(t, os.WriteFile(old, []byte("old"), 0o755))
	}
	return dir
}

// tools puts programs of these names in front of all others, which do nothing.
func tools(t *testing.T, names ...string) {
	dir := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func files(t *testing.T, dir string) (all []string) {
	require.NoError(t, filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
		all = append(all, file)
		return err
	}))
	return all
}

// TestSwapBuilds: with sources, swap runs what they build now, however new another library there is, and writes nothing
// among them.
func TestSwapBuilds(t *testing.T) {
	dir := tree(t)
	tools(t, "go", "gcc")
	before := files(t, dir)
	print := `IFS=:; for l in $LD_PRELOAD; do [ -f "$l" ] && read -r line <"$l" && echo "uses $line"; done; exit 7`
	for i, content := range []string{"built", "built", "anew"} {
		require.NoError(t, os.WriteFile("scripts/libnccl", []byte("echo "+content+" >$1"), 0o755))
		code, stdout, stderr := ringoHere("swap", "sh", "-c", print)
		require.Equal(t, 7, code, stderr)
		require.Contains(t, stdout, "uses "+content+"\n")
		require.Contains(t, stdout, "exit status 7\ncalls were not counted: there is no libringo-count.so beside ")
		if i == 0 {
			require.Contains(t, stderr, "ringo: building ")
		} else {
			require.NotContains(t, stderr, "building")
		}
	}
	require.NoError(t, os.WriteFile("scripts/libnccl", []byte("echo does not compile; exit 1"), 0o755))
	code, _, stderr := ringoHere("swap", "sh", "-c", print)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "does not compile")
	require.Equal(t, before, files(t, dir))
}

// TestEmulateBuilds: with sources, emulate runs the libraries that they build now.
func TestEmulateBuilds(t *testing.T) {
	dir := tree(t)
	tools(t, "go", "gcc")
	before := files(t, dir)
	_, stdout, stderr := ringoHere("emulate", "sh", "-c", `cat "${LD_LIBRARY_PATH%%:*}/libcuda.so.1"`)
	require.Contains(t, stdout, "driver\n", stderr)
	_, stdout, stderr = ringoHere("swap", "-g", "2", "sh", "-c", `cat "${LD_LIBRARY_PATH%%:*}/libcuda.so.1"`)
	require.Contains(t, stdout, "driver\n", stderr)
	require.Equal(t, before, files(t, dir))
}

// TestSwapWithoutTools: a library that is there is taken if it is of the command's version, and otherwise named.
func TestSwapWithoutTools(t *testing.T) {
	tree(t)
	sh := need.Tool(t, "bash")
	t.Setenv("PATH", t.TempDir())
	all := map[string][]string{"build/libnccl.so.2": {"swap", sh, "-c", "exit 7"},
		"build/cuda/lib64/libnccl.so.2": {"emulate", sh, "-c", "exit 7"}}
	for library, args := range all {
		write := func(version string) (string, string) {
			require.NoError(t, os.WriteFile(library, []byte("log\x00, which is Ringo "+version+" in %s\x00"), 0o755))
			_, stdout, stderr := ringoHere(args...)
			return stdout, stderr
		}
		stdout, stderr := write(ringo.Version)
		require.Contains(t, stdout, "exit status 7", stderr)
		_, stderr = write("0.0.1")
		require.Contains(t, stderr, "builds it by Go and gcc: ")
		require.Contains(t, stderr, library+" is not of this command's version: of Ringo 0.0.1, and ringo of "+ringo.Version)
		require.NoError(t, os.WriteFile(library, []byte("x, which is "), 0o755))
		_, _, stderr = ringoHere(args...)
		require.Contains(t, stderr, library+" does not tell its version, which has to be Ringo "+ringo.Version)
	}
	require.NoError(t, os.WriteFile("given", []byte(", which is Ringo 0.0.1 in %s"), 0o755))
	_, stdout, stderr := ringoHere("swap", "-nccl", "given", sh, "-c", "exit 7")
	require.Contains(t, stdout, "exit status 7", "what is given is taken")
	require.Contains(t, stderr, "given is not of this command's version")
}

// TestStrangersBuild: what others have left above the working directory is neither run nor preloaded, and named.
func TestStrangersBuild(t *testing.T) {
	top := tree(t)
	tools(t, "go", "gcc")
	sh := need.Tool(t, "sh")
	require.NoError(t, os.WriteFile("scripts/libnccl", []byte("echo built >$1; echo >"+top+"/ran"), 0o755))
	require.NoError(t, os.WriteFile("scripts/cuda-kit", []byte("echo >"+top+"/ran"), 0o755))
	for _, library := range []string{"build/libnccl.so.2", "build/cuda/lib64/libnccl.so.2"} {
		require.NoError(t, os.WriteFile(library, []byte("log\x00, which is Ringo "+ringo.Version+" in %s\x00"), 0o755))
	}
	require.NoError(t, os.Mkdir("own", 0o700))
	t.Chdir("own")
	print := "echo preloads $LD_PRELOAD, path $LD_LIBRARY_PATH"
	refused := func(why string) {
		for flag, name := range map[string]string{"-nccl FILE": "swap", "-kit FOLDER": "emulate"} {
			code, stdout, stderr := ringoHere(name, sh, "-c", print)
			require.Equal(t, 1, code, stderr)
			require.Empty(t, stdout)
			require.NoFileExists(t, filepath.Join(top, "ran"))
			require.Contains(t, stderr, "scripts/libnccl is not used, for "+top+" "+why)
			require.Contains(t, stderr, "build", "the library is left out too")
			require.Contains(t, stderr, flag)
		}
	}
	require.NoError(t, os.Chmod(top, 0o777))
	refused("may be written by other users (drwxrwxrwx)")
	_, stdout, stderr := ringoHere("swap", "-nccl", "../build/libnccl.so.2", sh, "-c", print)
	require.Contains(t, stdout, "preloads "+top+"/build/libnccl.so.2", "what is named is used")
	require.Contains(t, stderr, "-nccl names what others can change: ")
	require.NoError(t, os.WriteFile("../build/"+countFile, nil, 0o755))
	_, stdout, _ = ringoHere("swap", "-nccl", "../build/libnccl.so.2", sh, "-c", print)
	require.NotContains(t, stdout, "preloads "+top+"/build/"+countFile, "and not what lies beside it")
	require.Contains(t, stdout, "calls were not counted: ")
	require.NoError(t, os.Chmod(top, 0o755))
	if os.Geteuid() == 0 { // only root gives files away
		require.NoError(t, os.Chown(top, 65534, 65534))
		refused("belongs to ")
	}
}
