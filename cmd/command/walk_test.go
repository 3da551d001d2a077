package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// The kinds of values that flags take. Each flag of each help text has one.
const (
	isBool     = "yes or no"
	isCount    = "a number of which a machine has few"
	isNumber   = "a number"
	isSize     = "a number of bytes"
	isTime     = "a time"
	isWord     = "a word of some"
	isAddress  = "host:port"
	isIn       = "a file to read"
	isOut      = "a file to write"
	isPicture  = "a file to write whose name's end is its format"
	isAnything = "any text"
)

// kindsOf has the flags by kind, all commands' in one line; "COMMAND -flag" is that command's alone.
var kindsOf = map[string]string{
	isBool: `-error -deterministic -beside -unchecked -no-prefix -watch -quick -full -picture -registered -parts -exact -cooperative
		-shrink -compare -host; why -json; ptx -json; emulate -json`,
	isCount: `-np -g -hosts -w -m -reps -G -node -restarts -expect-gpus -cards -seeds -max-blocks -min-blocks -sms -blocks -k;
		probe -gpu; -R -c -first -on`,
	isNumber: "-r -n -f -seed -host-mbps -call -grid -block -shared -weak -bw; ptx -steps; explain -steps",
	isSize:   "-b -e -i -s -row",
	isTime: `-timeout -peer-timeout -beside-product -beside-time -time -wait -latency -join-timeout -every -grace
		-for`,
	isWord:     "-d -o -device -transport -algo -peer -net -path -policy -link -gpu",
	isAddress:  "-addr -address -ras",
	isIn:       "-nccl -cublas -baseline -hostfile -plan -over -kit -from; play -trace; plot -trace",
	isOut:      "-json -trace -metrics -junit; tune -o",
	isPicture:  "-plot -html -svg; explain -o; play -o; plot -o",
	isAnything: "-cublas -ssh -remote -iface -title -ignore -allow -pipes -buf -kernel -arg -want -launch-peer",
}

// kindOf is the kind of a command's flag.
func kindOf(command, flag string) (kind string) {
	for k, list := range kindsOf {
		for part := range strings.SplitSeq(list, ";") {
			names := strings.Fields(part)
			own := !strings.HasPrefix(names[0], "-")
			switch {
			case own && names[0] == command && slices.Contains(names[1:], flag):
				return k
			case !own && slices.Contains(names, flag):
				kind = k
			}
		}
	}
	return kind
}

// lines are right command lines that end at once where a flag is wrong.
func lines(t *testing.T) map[string][]string {
	return map[string][]string{
		"bench": {"bench", "allreduce", "-transport", "inproc", "-np", "2", "-e", "8"}, "run": {"run", "-np", "1"},
		"why": {"why", "absent"}, "check": {"check", "-hostfile", "absent", "-ssh", "false"}, "info": {"info", "-quick"},
		"explain": {"explain", "reduce", "-device", "emu"}, "sim": {"sim", "allreduce", "-np", "4", "-s", "1"},
		"play": {"play", "-o", "page.html"}, "probe": {"probe", "-device", "emu", "-b", "8"},
		"tune": {"tune", "reduce", "-device", "emu", "-g", "2", "-e", "8"}, "ptx": {"ptx", "check", "absent.ptx"},
		"emulate": {"emulate", "-kit", "absent"}, "swap": {"swap", "-nccl", "absent"}, "plot": {"plot", "absent.json"},
		"completion": {"completion", "bash"},
	}
}

// walk calls f for each flag of a kind with a command line that has it at its end, in an empty folder.
func walk(t *testing.T, kinds []string, f func(c command, flag string, line []string)) {
	t.Chdir(t.TempDir())
	lines := lines(t)
	for _, c := range commands {
		for _, flag := range c.flags() {
			if flag == "-quick" || !slices.Contains(kinds, kindOf(c.name, flag)) {
				continue
			}
			f(c, flag, append(slices.Clone(lines[c.name]), flag))
		}
	}
}

var (
	flagWord   = regexp.MustCompile(`(?:^|[\s(])(-[a-zA-Z][a-z-]*)`)
	needsCalls = map[string]bool{"run": true, "emulate": true, "swap": true} // a program follows
)

// refused has a command line fail as a mistake that names the flag, with nothing written.
func refused(t *testing.T, c command, flag, value string, line []string) (sentence string) {
	line = append(slices.Clone(line), value)
	if needsCalls[c.name] {
		line = append(line, "--", "true")
	}
	code, stdout, stderr := ringoHere(line...)
	require.Equal(t, 2, code, "%q: %s%s", line, stdout, stderr)
	require.Empty(t, stdout, "%q", line)
	require.Regexp(t, `(^|[\s(])`+flag+`\b`, stderr, "%q", line)
	require.NotContains(t, stderr, "-"+flag, "%q: flags have one dash", line)
	for _, m := range flagWord.FindAllStringSubmatch(strings.ReplaceAll(stderr, " "+value+":", ""), -1) {
		require.Contains(t, append(c.flags(), "-h"), m[1], "%q: no flag of this command: %s", line, stderr)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left, "%q", line)
	return stderr
}

// TestFlagsHaveKinds: the tests below see each flag.
func TestFlagsHaveKinds(t *testing.T) {
	for _, c := range commands {
		for _, flag := range c.flags() {
			require.NotEmpty(t, kindOf(c.name, flag), "%s %s", c.name, flag)
		}
	}
}

// TestWrongNumbers: what is no number, or none that makes sense, is refused in a sentence before any work.
func TestWrongNumbers(t *testing.T) {
	walk(t, []string{isCount, isNumber, isSize, isTime}, func(c command, flag string, line []string) {
		values := []string{"-2", "x", "", "NaN", "-Inf", "1e400", "99999999999999999999999", "1,,2", ",", "1;2"}
		switch kindOf(c.name, flag) {
		case isCount:
			values = append(values, "2000000000", "1.5")
		case isSize:
			values = append(values, "9999999999T", "1.0001", "1Q")
		case isTime:
			values = append(values, "-1s", "9999999999h", "3000000h", "1")
		case isNumber:
			values = append(values, "Inf", "1:Inf", "0,99999999999:2")
		}
		for _, v := range values {
			refused(t, c, flag, v, line)
		}
	})
}

// TestWrongWords: each flag that takes one of some words says which there are.
func TestWrongWords(t *testing.T) {
	walk(t, []string{isWord}, func(c command, flag string, line []string) {
		for _, v := range []string{"nonsense", "nonsense,nix", ""} {
			if v == "" && (flag == "-peer" || flag == "-gpu" && c.name == "explain") {
				continue // none
			}
			require.Regexp(t, flag+`.*: unknown .*"; (known are |did you mean )`, refused(t, c, flag, v, line))
		}
	})
}

// TestWrongAddresses: what cannot be an address is a mistake in the command line.
func TestWrongAddresses(t *testing.T) {
	walk(t, []string{isAddress}, func(c command, flag string, line []string) {
		if flag == "-ras" {
			return // a port need not be given
		}
		for _, v := range []string{":99999", "x:y", "x", ""} {
			refused(t, c, flag, v, line)
		}
	})
	refused(t, commands[3], "-metrics", ":99999", []string{"check", "-metrics"})
}

// TestWrongOutputs: a folder that is not there and a name with another end are found before the work, by one status.
func TestWrongOutputs(t *testing.T) {
	walk(t, []string{isOut, isPicture}, func(c command, flag string, line []string) {
		if needsCalls[c.name] || c.name == "play" && flag == "-o" {
			line = slices.DeleteFunc(line, func(s string) bool { return s == "page.html" })
		}
		none := filepath.Join(t.TempDir(), "none", "x.svg")
		ends := []string{none, none + ".html"}
		if kindOf(c.name, flag) == isPicture {
			ends = []string{none + ".txt", "x.txt", "x"}
		}
		if c.name == "play" {
			line = []string{"play", "-o"}
		}
		if c.name == "bench" && flag == "-plot" {
			line = append([]string{"bench", "allreduce"}, flag)
		}
		for _, v := range ends {
			refused(t, c, flag, v, line)
		}
	})
}

// TestMissingInputs: what is to be read and is not there is a mistake in the command line; why and run have statuses of
// their own.
func TestMissingInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]int{
		"plot -o x.svg absent.json": 2, "play -trace absent": 2, "sim allreduce -net absent.json": 2,
		"sim allreduce -trace t -over absent": 2, "explain allreduce -device emu -plan absent": 2,
		"check -baseline absent":         2,
		"bench -from absent -plot x.svg": 2, "ptx check absent.ptx": 2, "check -hostfile absent": 2,
		"swap -nccl absent -- true": 2, "emulate -kit absent -- true": 2, "why absent": 1, "run -np 1 -- ./absent": 127,
	} {
		code, stdout, stderr := ringoHere(strings.Fields(line)...)
		require.Equal(t, want, code, "%s: %s", line, stderr)
		require.Empty(t, stdout, line)
		require.Contains(t, stderr, "absent", line)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestStandardOutput: "-" is standard output for each flag that has a file written, which then gets nothing else.
func TestStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(args ...string) string {
		code, stdout, stderr := ringoHere(args...)
		require.Zero(t, code, "%q: %s", args, stderr)
		return stdout
	}
	bench := []string{"bench", "allreduce", "-transport", "inproc", "-np", "2", "-e", "8", "-n", "1"}
	run(append(bench, "-json", "report.json", "-trace", "trace.json")...)
	short := map[string][]string{"bench": bench, "explain": {"explain", "reduce"},
		"sim":  {"sim", "allreduce", "-np", "4", "-s", "1"},
		"info": {"info", "-quick"}, "play": {"play"}, "plot": {"plot", "report.json"}, "plot trace": {"plot", "trace.json"},
		"probe": {"probe", "-device", "emu", "-b", "64", "-d", "int8", "-k", "1", "-reps", "1"},
		"tune":  {"tune", "reduce", "-device", "emu", "-g", "2", "-e", "8", "-blocks", "0", "-time", "1ms"},
	}
	for name, line := range short {
		name, _, _ = strings.Cut(name, " ")
		c, err := commandOf(name)
		require.NoError(t, err)
		for _, flag := range c.flags() {
			kind := kindOf(name, flag)
			if kind != isOut && kind != isPicture {
				continue
			}
			out := run(append(slices.Clone(line), flag, "-")...)
			switch {
			case flag == "-o" && name == "tune":
				require.True(t, strings.HasPrefix(out, "ringo plan "), out)
			case name == "play":
				require.Regexp(t, `(?i)^<!doctype html>`, out[:40])
			case kind == isPicture:
				require.Regexp(t, `(?s)^(<\?xml[^\n]*\n)?<svg.*</svg>\n?$`, out, "%s %s", name, flag)
			default:
				require.True(t, json.Valid([]byte(out)), "%s %s: %s", name, flag, out)
			}
			require.NoFileExists(t, "-", "%s %s", name, flag)
		}
	}
	code, _, stderr := ringoHere("sim", "allreduce", "-np", "4", "-json", "-", "-plot", "-")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "-json and -plot are both -")
}

// TestNamesOfOthers: no control character of a name reaches a terminal, whatever flag, file or variable it comes by.
func TestNamesOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("such a name is none of a file there")
	}
	const name = "h\x1b[31m\u202e\x9b"
	printed := func(args ...string) {
		_, stdout, stderr := ringoHere(args...)
		for _, bad := range []string{"\x1b", "\u202e", "\x9b", "\u009b"} {
			require.NotContains(t, stdout+stderr, bad, "%q", args)
		}
	}
	all := []string{isCount, isNumber, isSize, isTime, isWord, isAddress, isIn, isOut, isPicture, isAnything}
	walk(t, all, func(c command, flag string, line []string) {
		if c.name == "tune" || c.name == "bench" && kindOf(c.name, flag) == isOut {
			line = append(slices.Clone(line[:len(line)-1]), "-s", flag) // they would measure
		}
		if line = append(line, name); needsCalls[c.name] {
			line = append(line, "--", name)
		}
		printed(line...)
	})
	printed(name)
	printed("help", name)
	for _, c := range commands {
		printed(append(slices.Clone(lines(t)[c.name]), name)...)
	}
	need.Tool(t, "sh")
	require.NoError(t, os.WriteFile("hosts", []byte(name+"\n"), 0o600))
	printed("check", "-hostfile", "hosts", "-ssh", "false", "-join-timeout", "100ms")
	for _, v := range []string{"RINGO_TRANSPORT", "RINGO_HOSTID", "RINGO_TIMEOUT", "RINGO_SOCKET_IFNAME",
		"RINGO_CUDA_LIBRARY"} {
		t.Setenv(v, name)
		printed("info", "-quick")
		printed("bench", "allreduce", "-transport", "inproc", "-np", "2", "-e", "8", "-n", "1")
	}
}
