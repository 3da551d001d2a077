//go:build unix

package trusted

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRule: what lies at a path is trusted if each element, links resolved, is this user's or root's alone.
func TestRule(t *testing.T) {
	const me, other, shared, mine = 1000, 65534, 50, 1000
	dir, sticky := fs.ModeDir|0o755, fs.ModeDir|fs.ModeSticky|0o777
	system := map[string]file{
		"/": {dir, 0, 0}, "/tmp": {sticky, 0, 0}, "/home": {dir, 0, 0}, "/home/me": {dir, me, mine},
		"/home/me/lib": {0o644, me, mine}, "/home/me/open": {0o666, me, mine}, "/home/me/group": {0o664, me, mine},
		"/home/me/staff": {0o664, me, shared}, "/home/me/wide": {fs.ModeDir | 0o777, me, mine},
		"/home/me/wide/lib": {0o644, me, mine}, "/home/me/given": {0o644, other, mine}, "/home/me/acl": {0o664, me, mine},
		"/home/other": {dir, other, other}, "/home/other/lib": {0o644, me, mine},
		"/tmp/mine": {dir, me, mine}, "/tmp/mine/lib": {0o644, 0, 0}, "/tmp/theirs": {dir, other, other},
		"/tmp/theirs/lib": {0o644, me, mine}, "/tmp/lib": {0o644, me, mine}, "/tmp/sticky": {sticky, other, other},
		"/tmp/sticky/lib": {0o644, me, mine},
		"/tmp/trap":       {fs.ModeSymlink | 0o777, other, other}, "/tmp/link": {fs.ModeSymlink | 0o777, me, mine},
		"/home/me/out": {fs.ModeSymlink | 0o777, me, mine}, "/home/me/loop": {fs.ModeSymlink | 0o777, me, mine},
		"/home/me/up": {fs.ModeSymlink | 0o777, me, mine},
	}
	links := map[string]string{"/tmp/trap": "/home/me", "/tmp/link": "../home/me", "/home/me/out": "/tmp/theirs",
		"/home/me/loop": "loop", "/home/me/up": "./../../tmp/mine"}
	w := &world{user: me,
		stat: func(name string) (file, error) {
			f, ok := system[name]
			if !ok {
				return f, fs.ErrNotExist
			}
			return f, nil
		},
		link:  func(name string) (string, error) { return links[name], nil },
		alone: func(name string, group int) bool { return group == mine && name != "/home/me/acl" },
		name:  func(user int) string { return "user " + strconv.Itoa(user) },
	}
	for path, at := range map[string]string{
		"/home/me/lib": "", "/home/me": "", "/home/me/group": "", "/tmp/mine/lib": "", "/tmp/lib": "", "/tmp/link/lib": "",
		"/home/me/up/lib": "",
		"/tmp":            "/tmp", "/home/me/open": "/home/me/open", "/home/me/staff": "/home/me/staff", "/home/me/acl": "/home/me/acl",
		"/home/me/wide/lib": "/home/me/wide", "/home/me/given": "/home/me/given", "/home/other/lib": "/home/other",
		"/tmp/theirs/lib": "/tmp/theirs", "/tmp/sticky/lib": "/tmp/sticky", "/tmp/trap/lib": "/tmp/trap",
		"/home/me/out/lib": "/tmp/theirs",
	} {
		err := w.walk(path)
		if at == "" {
			require.NoError(t, err, path)
			continue
		}
		e := new(Error)
		require.ErrorAs(t, err, &e, path)
		require.Equal(t, at, e.At, path)
	}
	require.ErrorContains(t, w.walk("/home/me/given"), "belongs to user 65534, neither to user 1000 nor to root")
	require.ErrorContains(t, w.walk("/tmp/theirs/lib"), "/tmp/theirs/lib is not used, for /tmp/theirs belongs to user 65534")
	require.ErrorContains(t, w.walk("/home/me/open"), "chmod go-w")
	require.ErrorContains(t, w.walk("/home/me/loop/lib"), "too many symbolic links")
	require.ErrorIs(t, w.walk("/home/me/none"), fs.ErrNotExist)
	system["/"], system["/tmp"] = file{dir, other, other}, file{sticky, other, other} // as in a user namespace
	require.NoError(t, w.walk("/tmp/mine/lib"))
	require.NoError(t, w.walk("/home/me/lib"))
	require.Error(t, w.walk("/tmp/theirs/lib"))
	require.Error(t, w.walk("/tmp/sticky/lib"))
	w.user = 0
	require.Error(t, w.walk("/home/me/lib"), "another user's is not root's")
	require.NoError(t, new(world).walk("/home/other"), "where there are no owners")
}

// TestAlone: a group is the user's own if the files of the system name no other member.
func TestAlone(t *testing.T) {
	const users = "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nyou:x:1001:1001::/:/bin/sh\nodd\n"
	for line, want := range map[string]bool{
		"me:x:1000:": true, "me:x:1000:me,root": true, "me:x:1000:you": false, "team:x:1001:": false,
		"me:x:1000:me,you": false,
		"other:x:10:":      false, "": false, "bad:1000": false,
	} {
		group := 1000
		if line == "team:x:1001:" {
			group = 1001 // another user's first group
		}
		require.Equal(t, want, alone(group, 1000, "root:x:0:\n"+line+"\n", users), line)
	}
}

// TestOwners asks the system about files of other users, and about folders that all may write to.
func TestOwners(t *testing.T) {
	top := t.TempDir()
	lib := filepath.Join(top, "a", "lib")
	require.NoError(t, os.MkdirAll(filepath.Dir(lib), 0o755))
	require.NoError(t, os.WriteFile(lib, nil, 0o644))
	require.NoError(t, Paths(lib))
	link := filepath.Join(top, "link")
	require.NoError(t, os.Symlink("a", link))
	require.NoError(t, Paths(filepath.Join(link, "lib")))
	for mode, right := range map[fs.FileMode]bool{0o777: false, 0o777 | fs.ModeSticky: true} {
		require.NoError(t, os.Chmod(filepath.Dir(lib), mode))
		require.Equal(t, right, Paths(lib) == nil, mode)
	}
	require.NoError(t, os.Chmod(filepath.Dir(lib), 0o755))
	if os.Geteuid() != 0 {
		return // only root gives files away
	}
	for _, name := range []string{lib, filepath.Dir(lib), link} {
		require.NoError(t, os.Lchown(name, 65534, 65534))
		require.ErrorContains(t, Paths(filepath.Join(link, "lib")), "belongs to ")
		require.NoError(t, os.Lchown(name, 0, 0))
	}
	require.NoError(t, Paths(filepath.Join(link, "lib")))
}

// TestTree: one file or folder that others can change spoils all, but for those that are left out.
func TestTree(t *testing.T) {
	top := t.TempDir()
	deep := filepath.Join(top, "cmd", "a")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(top, "build"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(top, "build"), 0o777))
	file := filepath.Join(deep, "a.c")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	require.NoError(t, Tree(top, "build"))
	require.ErrorContains(t, Tree(top), filepath.Join(top, "build")+" may be written by other users")
	for _, name := range []string{file, deep} {
		require.NoError(t, os.Chmod(name, 0o777|fs.ModeSticky))
		require.ErrorContains(t, Tree(top, "build"), top+" is not used, for "+name+" may be written")
		require.NoError(t, os.Chmod(name, 0o755))
	}
	wide := filepath.Join(t.TempDir(), "wide")
	require.NoError(t, os.Mkdir(wide, 0o755))
	require.NoError(t, os.Symlink(wide, filepath.Join(deep, "link")))
	require.NoError(t, Tree(top, "build"))
	require.NoError(t, os.Chmod(wide, 0o777))
	require.ErrorContains(t, Tree(top, "build"), wide+" may be written")
}

// TestCache: without a home the cache is this user's among temporary files, and never what another has left there.
func TestCache(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", temporary)
	cache, err := Cache("peers")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(temporary, "ringo-peers-"+strconv.Itoa(os.Getuid())), cache)
	require.NoError(t, os.Chmod(cache, 0o777))
	_, err = Cache("peers")
	require.ErrorContains(t, err, "XDG_CACHE_HOME")
	require.NoError(t, os.Chmod(cache, 0o700))
	require.NoError(t, os.Chmod(temporary, 0o777))
	_, err = Cache("peers")
	require.ErrorContains(t, err, "other users", "another could move it away")
	_, err = MkdirTemp("", "x")
	require.ErrorContains(t, err, "TMPDIR")
	require.NoError(t, os.Chmod(temporary, 0o777|fs.ModeSticky))
	dir, err := MkdirTemp("", "x")
	require.NoError(t, err)
	require.DirExists(t, dir)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(cache, 65534, 65534))
		_, err = Cache("peers")
		require.ErrorContains(t, err, "belongs to ")
	}
}
