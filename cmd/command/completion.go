package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched/sim"
)

// completionHelp is what "ringo completion -h" prints.
const completionHelp = `usage: ringo completion bash|zsh|fish

Prints a script that has the shell complete commands, flags, collectives,
algorithms and other words of ringo. A program of another name that is also the
command (package command) is completed by its own name.

Examples
  source <(ringo completion bash)      # in ~/.bashrc
  source <(ringo completion zsh)       # in ~/.zshrc, after compinit
  ringo completion fish > ~/.config/fish/completions/ringo.fish
`

// completeCommand is the hidden command that the scripts call. It prints the completions of its last argument.
const completeCommand = "__complete"

// completions are the scripts, by shell. Where ringo prints no completion, the shell offers files.
var completions = map[string]string{
	"bash": `_ringo() {
	local IFS=$'\n' word
	COMPREPLY=()
	while read -r word; do
		COMPREPLY+=("$word")
	done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _ringo NAME
`,
	"zsh": `#compdef NAME
_ringo() {
	local -a found
	found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "${found[1]}" ]]; then
		compadd -a found
	else
		_files
	fi
}
compdef _ringo NAME
`,
	"fish": `function __ringo_complete
	set -l word (commandline -ct)
	set -l before (commandline -opc)
	set -l found ($before[1] __complete $before[2..] "$word" 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path "$word"
	end
end
complete -c NAME -f -a '(__ringo_complete)'
`,
}

func runCompletion(_ context.Context, args []string, stdout, _ io.Writer) error {
	names, err := cli.Parse(flags("completion"), args)
	if err != nil {
		return err
	}
	shells := slices.Sorted(maps.Keys(completions))
	if len(names) != 1 {
		return cli.Usagef("which shell? give one of %s", strings.Join(shells, ", "))
	}
	script, ok := completions[names[0]]
	if !ok {
		return cli.Unknown("shell", names[0], shells)
	}
	_, err = io.WriteString(stdout, strings.ReplaceAll(script, "NAME", programName()))
	return err
}

// complete prints the completions of the last word, one a line.
func complete(w io.Writer, words []string) {
	for _, c := range candidates(words) {
		fmt.Fprintln(w, c)
	}
}

// candidates are the completions of the last of words, which may be empty. There are none where a
// file name or any text may stand.
func candidates(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	if i := slices.Index(words, "="); i >= 0 && i >= len(words)-2 { // bash has --flag=x as three words
		words = slices.Delete(slices.Clone(words), i, i+1)
		if i == len(words) {
			words = append(words, "")
		}
	}
	word, before := words[len(words)-1], words[:len(words)-1]
	if len(before) == 0 {
		return matching(word, append(commandNames(), "help", "version"))
	}
	name := before[0]
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	switch {
	case name == "help" && len(before) == 1:
		return matching(word, commandNames())
	case i < 0:
		return nil
	case strings.HasPrefix(word, "-") && !strings.Contains(word, "="):
		found := matching("-"+strings.TrimLeft(word, "-"), commands[i].flags())
		for k := range found {
			if strings.HasPrefix(word, "--") { // a user who writes two dashes gets two
				found[k] = "-" + found[k]
			}
		}
		return found
	}
	flag, value, joined := strings.Cut(word, "=")
	switch {
	case joined && strings.HasPrefix(flag, "-"):
		flag += "="
	case strings.HasPrefix(before[len(before)-1], "-"):
		flag, value = before[len(before)-1], word
	default:
		return matching(word, arguments(name))
	}
	bare := strings.Trim(flag, "-=")
	known := slices.Clone(cli.Known(commands[i].asked().Flags, bare))
	if known == nil {
		known = values(name, bare)
	}
	if known == nil && !joined && len(before) > 1 { // a flag without a value, perhaps
		return matching(word, arguments(name))
	}
	// Of a list with commas the last element is completed.
	head := value[:strings.LastIndexByte(value, ',')+1]
	if joined {
		head = flag + head
		value = flag + value
	}
	for i, k := range known {
		known[i] = head + k
	}
	return matching(value, known)
}

func matching(word string, known []string) (list []string) {
	for _, k := range known {
		if strings.HasPrefix(k, word) {
			list = append(list, k)
		}
	}
	return list
}

func commandNames() (names []string) {
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}

// arguments are what a command takes besides flags.
func arguments(name string) []string {
	switch name {
	case "bench":
		return append(bench.Names(), "all")
	case "explain", "sim", "play":
		return bench.Names()
	case "completion":
		return slices.Sorted(maps.Keys(completions))
	case "ptx":
		return []string{"check"}
	}
	return nil
}

// values are the words that a flag may be set to where cli.Known does not tell; nil for a flag that takes anything else
// or nothing.
func values(command, flag string) []string {
	switch flag {
	case "algo":
		return append([]string{"all"}, ringo.Algorithms()...)
	case "net":
		return append(slices.Sorted(maps.Keys(sim.Presets)), "list")
	case "transport":
		return []string{"auto", "inproc", "shm", "socket", "tcp", "unix", "ib", "plugin", "p2p"}
	case "peer":
		return []string{"openmpi", "mpich", "gloo", "nccl"}
	case "policy":
		return []string{"default", "latency", "efficiency", "zero"}
	case "steps":
		if command == "explain" {
			return []string{"auto", "all", "none"}
		}
	case "d":
		var names []string
		for _, t := range kernels.Types() {
			names = append(names, t.String())
		}
		return names
	case "o":
		if command == "bench" || command == "probe" {
			return []string{"sum", "prod", "max", "min", "avg", "bitand", "bitor", "bitxor", "all"}
		}
	}
	return nil
}
