//go:build unix

package trusted

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func system() *world {
	w := &world{user: os.Geteuid(), link: os.Readlink, name: nameOf}
	w.stat = func(name string) (file, error) {
		info, err := os.Lstat(name)
		if err != nil {
			return file{}, err
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return file{}, fmt.Errorf("%s: whose it is cannot be told", name)
		}
		return file{info.Mode(), int(s.Uid), int(s.Gid)}, nil
	}
	w.alone = func(name string, group int) bool {
		groups, _ := os.ReadFile("/etc/group")
		users, _ := os.ReadFile("/etc/passwd")
		return !hasACL(name) && alone(group, w.user, string(groups), string(users))
	}
	return w
}

func nameOf(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return "user " + u.Username
	}
	return fmt.Sprint("user ", id)
}

// alone reports whether a group has no members but a user and root, by the texts of /etc/group and /etc/passwd. Of a
// group that is not there others may be members.
func alone(group, who int, groups, users string) bool {
	known := []string{"", "root"}
	for line := range strings.Lines(users) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 {
			continue
		}
		if f[2] == strconv.Itoa(who) {
			known = append(known, f[0])
		} else if f[3] == strconv.Itoa(group) && f[2] != "0" {
			return false
		}
	}
	for line := range strings.Lines(groups) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[2] != strconv.Itoa(group) {
			continue
		}
		return !slices.ContainsFunc(strings.Split(f[3], ","), func(m string) bool { return !slices.Contains(known, m) })
	}
	return false
}
