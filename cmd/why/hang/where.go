package hang

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Where is a line of a program as a person says it, "train.py:40 in step", and "" for one of PyTorch's own or of a
// library around it.
func Where(file string, line int, function string) string {
	if file == "" || Library(file) {
		return ""
	}
	return fmt.Sprintf("%s:%d in %s", filepath.Base(file), line, function)
}

// Library reports whether a file is PyTorch's own or that of a library around it.
func Library(file string) bool {
	for _, part := range []string{"/torch/", "site-packages/", "dist-packages/", "<frozen", "/python3", "??",
		"multiprocessing/"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	for _, start := range []string{"torch/", "threading.py", "selectors.py", "socket.py", "queue.py", "subprocess.py",
		"ssl.py", "runpy.py", "concurrent/"} {
		if strings.HasPrefix(file, start) {
			return true
		}
	}
	return strings.HasSuffix(file, ".cpp") || strings.HasSuffix(file, ".so") || strings.HasSuffix(file, ".pyx")
}
