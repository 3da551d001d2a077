// late.h begins Go's runtime of a C library with the library's first call. The runtime begins by a pointer in .init_array,
// on loading; the linker's script of the library moves that pointer between the marks ringo_init_begin and ringo_init_end.
// So a process that loads the library and does not call it has no thread and no signal handler of Go's, and may fork.
#pragma once

// late_ready begins Go's runtime. It returns 0 in the child of a fork that came afterwards, for Go's threads are not there.
int late_ready(void);

// late_begun tells whether Go's runtime has begun.
int late_begun(void);
