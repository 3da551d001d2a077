package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/watch"
	"github.com/ringo-go/ringo/internal/cli"
)

// whyWatch looks at a living job until ctx ends: by RAS, by new and changed files, and by dumps that it asks the ranks
// for.
func whyWatch(ctx context.Context, names []string, address, pipes string, every, stall time.Duration,
	w io.Writer) error {
	if err := watchable(names, pipes); err != nil {
		return err
	}
	watcher := &watch.Watcher{Every: every, Stall: stall, Out: w}
	if f, ok := w.(*os.File); ok {
		watcher.Page = term.IsTerminal(int(f.Fd()))
	}
	if address != "" {
		watcher.Sources = append(watcher.Sources, watch.RAS(address))
	}
	if len(names) > 0 {
		look := whyLooker(names, stall)
		if pipes != "" && address == "" { // without RAS each look asks, and a dump is work for the job
			watcher.Every = max(every, 5*time.Second)
			inner := look
			look = func(ctx context.Context) (watch.Look, error) { poke(pipes); return inner(ctx) }
		}
		watcher.Sources = append(watcher.Sources, watch.Source{Name: strings.Join(names, " "), Look: look})
	}
	if pipes != "" && address != "" {
		watcher.Poke = func() { poke(pipes) }
	}
	watcher.Run(ctx)
	return nil
}

// watchable returns an error if names are of folders and files that are not there: nothing would ever be seen of them.
func watchable(names []string, pipes string) error {
	for _, name := range names {
		if name == "-" {
			return cli.Usagef("-watch looks at folders and files again and again, which standard input cannot be")
		}
		_, err := os.Stat(name)
		if pattern := strings.ContainsAny(name, "*?["); err != nil && pattern {
			_, err = os.Stat(filepath.Dir(name))
		}
		if err != nil {
			return fmt.Errorf("-watch: %w: make the folder first", err)
		}
	}
	if pipes == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(pipes + "x")); err != nil {
		return fmt.Errorf("-pipes: %w: TORCH_NCCL_DEBUG_INFO_PIPE_FILE has the beginning of the pipes' names", err)
	}
	return nil
}

// poke asks each rank for a dump, by the pipe that PyTorch names after TORCH_NCCL_DEBUG_INFO_PIPE_FILE and the rank.
// It skips a pipe without a reader.
func poke(prefix string) {
	list, _ := filepath.Glob(prefix + "*.pipe")
	for _, name := range list {
		if info, err := os.Stat(name); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			continue
		}
		if f, err := os.OpenFile(name, os.O_WRONLY|nonblock, 0); err == nil {
			_, _ = f.WriteString("1\n")
			f.Close()
		}
	}
}

// whyLooker looks at files whenever one is new or has changed. The files of the first look are another hang's: they
// count when they change.
func whyLooker(names []string, stall time.Duration) func(context.Context) (watch.Look, error) {
	var first, before map[string]string
	var last watch.Look
	return func(ctx context.Context) (watch.Look, error) {
		now := stamps(names)
		if first == nil {
			first, before = now, now
		}
		if maps.Equal(now, before) {
			return last, nil
		}
		before = now
		u, err := newUnpacker()
		if err != nil {
			return last, err
		}
		defer u.close()
		u.old = func(file string) bool { return first[file] != "" && first[file] == now[file] }
		files, _, err := sortFiles(u, names)
		if err != nil {
			last = watch.Look{} // the files may not be whole yet
			return last, nil
		}
		files.wait, files.living = max(stall, 1), true
		found, err := files.judge(io.Discard)
		if err != nil {
			last = watch.Look{}
			return last, nil
		}
		last = watch.Look{Late: found.late}
		if all := hang.Merge(found.answers); len(all) > 0 {
			last.Answer = all[0]
		}
		return last, nil
	}
}

// stamps are the times and sizes of files, and of the files in folders.
func stamps(names []string) map[string]string {
	all := map[string]string{}
	for _, word := range names {
		list := []string{word}
		if some, _ := filepath.Glob(word); len(some) > 0 {
			list = some
		}
		for i := 0; i < len(list); i++ {
			info, err := os.Stat(list[i])
			switch {
			case err != nil:
			case info.IsDir():
				inside, _ := new(unpacker).tree(list[i], 1)
				list = append(list, inside...)
			case info.Mode().IsRegular():
				all[list[i]] = fmt.Sprint(info.ModTime(), info.Size())
			}
		}
	}
	return all
}
