//go:build unix && !linux

package trusted

func hasACL(string) bool { return false }
