package trusted

import "golang.org/x/sys/unix"

// hasACL reports whether an ACL gives rights that the mode does not show.
func hasACL(name string) bool {
	n, err := unix.Lgetxattr(name, "system.posix_acl_access", nil)
	return err == nil && n > 0
}
