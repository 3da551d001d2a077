package check

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/cli"
)

// TestDeploy: the files in deploy have the form that Kubernetes and systemd want, and call
// ringo with existing flags.
func TestDeploy(t *testing.T) {
	if _, err := os.Stat("deploy"); err != nil {
		t.Skip("the source is not here")
	}
	read := func(name string) string {
		b, err := os.ReadFile("deploy/" + name)
		require.NoError(t, err)
		return string(b)
	}
	called := func(args ...string) {
		t.Helper()
		require.Equal(t, "check", args[0])
		var f commandFlags
		fs := flag.NewFlagSet("check", flag.ContinueOnError)
		f.register(fs)
		rest, err := cli.Parse(fs, args[1:])
		require.NoError(t, err)
		require.Empty(t, rest)
	}
	kinds := 0
	for _, name := range []string{"job.yaml", "daemonset.yaml"} {
		text := read(name)
		for _, doc := range strings.Split(text, "\n---\n") {
			require.YAMLEq(t, doc, doc)
			require.Regexp(t, `(?m)^apiVersion: `, doc)
			require.Regexp(t, `(?m)^kind: `, doc)
			kinds++
		}
		command := regexp.MustCompile(`(?m)^ +command: (\[.*\])$`).FindStringSubmatch(text)
		require.NotNil(t, command, name)
		var words []string
		require.NoError(t, json.Unmarshal([]byte(command[1]), &words))
		require.Equal(t, "/ringo", words[0])
		called(words[1:]...)
	}
	require.Equal(t, 3, kinds)

	// The pods of the job find each other.
	job := read("job.yaml")
	env := map[string]string{"JOB_COMPLETION_INDEX": "2", "RINGO_COMM_SECRET": "x"}
	for _, m := range regexp.MustCompile(`(?m)- name: ([A-Z_]+)\n +value: "?([^"\n]*)"?$`).FindAllStringSubmatch(job, -1) {
		env[m[1]] = m[2]
	}
	spec, ok, err := bootstrap.FromEnv(func(name string) string { return env[name] })
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 2, spec.Rank)
	require.Equal(t, 4, spec.Size)
	require.Equal(t, "ringo-check-0.ringo-check", strings.Split(spec.Addr, ":")[0])
	for _, want := range []string{"completionMode: Indexed", "completions: 4", "parallelism: 4", "clusterIP: None",
		"subdomain: ringo-check"} {
		require.Contains(t, job, want)
	}
	require.Contains(t, read("daemonset.yaml"), "containerPort: 9400")

	service := read("ringo-check.service")
	exec := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/ringo (.*)$`).FindStringSubmatch(service)
	require.NotNil(t, exec)
	called(strings.Fields(exec[1])...)
	require.Contains(t, read("ringo-check.timer"), "OnCalendar=")
	image := read("Containerfile")
	require.Contains(t, image, "FROM scratch\nCOPY --from=build /image /\nENTRYPOINT [\"/ringo\"]")
}
