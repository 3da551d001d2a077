package hang

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Where is a line of a program in words, "train.py:40 in step"; "" for a line of PyTorch or another library.
func Where(file string, line int, function string) string {
	if file == "" || Library(file) {
		return ""
	}
	return fmt.Sprintf("%s:%d in %s", filepath.Base(file), line, function)
}

// Library reports whether a file belongs to PyTorch, Python or another library.
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
