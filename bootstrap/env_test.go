package bootstrap

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// vars makes a getenv of "A=1 B=2".
func vars(text string) func(string) string {
	m := map[string]string{}
	for f := range strings.FieldsSeq(text) {
		k, v, _ := strings.Cut(f, "=")
		m[k] = v
	}
	return func(k string) string { return m[k] }
}

func TestFromEnv(t *testing.T) {
	id, err := randomID("10.0.0.1:4000")
	require.NoError(t, err)
	slurm := "SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_TASKS_PER_NODE=4(x2) SLURM_STEP_ID=0 " +
		"SLURM_JOB_ID=77 "
	slurmPort := portOf("SLURM_JOB_ID=77 SLURM_STEP_ID=0")
	tests := []struct {
		name, env string
		want      Spec
	}{
		{"ringo", "RINGO_RANK=1 RINGO_SIZE=4 RINGO_COMM_ID=h:1 RINGO_COMM_SECRET=s",
			Spec{Rank: 1, Size: 4, LocalRank: -1, Addr: "h:1", Secret: "s", Source: "ringo"}},
		{"ringo before torchrun, with its local rank",
			"RINGO_RANK=1 RINGO_SIZE=4 RINGO_COMM_ID=h:1 RINGO_COMM_SECRET=s RANK=0 WORLD_SIZE=9 LOCAL_RANK=1 " +
				"LOCAL_WORLD_SIZE=2",
			Spec{Rank: 1, Size: 4, LocalRank: 1, LocalSize: 2, Addr: "h:1", Secret: "s", Source: "ringo"}},
		{"ringo with an ID", "RINGO_RANK=1 RINGO_SIZE=4 RINGO_COMM_ID=" + id.String(),
			Spec{Rank: 1, Size: 4, LocalRank: -1, Addr: id.String(), Source: "ringo"}},
		{"ringo alone", "RINGO_RANK=0 RINGO_SIZE=1 RINGO_COMM_SECRET=s",
			Spec{Rank: 0, Size: 1, LocalRank: -1, Secret: "s", Source: "ringo"}},
		{"torchrun", "RANK=3 WORLD_SIZE=8 LOCAL_RANK=3 LOCAL_WORLD_SIZE=4 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 " +
			"RINGO_COMM_SECRET=s",
			Spec{Rank: 3, Size: 8, LocalRank: 3, LocalSize: 4, Addr: "10.0.0.1:31500", Secret: "s", Source: "torchrun"}},
		{"torchrun, high port, IPv6", "RANK=3 WORLD_SIZE=8 MASTER_ADDR=fe80::1 MASTER_PORT=65000 RINGO_COMM_SECRET=s",
			Spec{Rank: 3, Size: 8, LocalRank: -1, Addr: "[fe80::1]:63000", Secret: "s", Source: "torchrun"}},
		{"torchrun without secret",
			"RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 TORCHELASTIC_RUN_ID=x TORCHELASTIC_RESTART_COUNT=2",
			Spec{Rank: 0, Size: 2, LocalRank: -1, Addr: "h:2001", Guessable: true, Source: "torchrun",
				Secret: "torchrun TORCHELASTIC_RUN_ID=x TORCHELASTIC_RESTART_COUNT=2 h:2001 of 2"}},
		{"Open MPI, one machine",
			"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
				"PMIX_NAMESPACE=j RINGO_COMM_SECRET=s",
			Spec{Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Addr: fmt.Sprint("127.0.0.1:", portOf("PMIX_NAMESPACE=j")),
				Secret: "s", Source: "Open MPI"}},
		{"Open MPI, MASTER_ADDR",
			"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
				"MASTER_ADDR=h RINGO_COMM_SECRET=s",
			Spec{Rank: 1, Size: 4, LocalRank: 1, LocalSize: 2, Addr: "h:29717", Secret: "s", Source: "Open MPI"}},
		{"Open MPI, several machines",
			"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
				"OMPI_MCA_ess_base_jobid=7 OMPI_MCA_orte_precondition_transports=ab-cd " +
				"OMPI_MCA_orte_hnp_uri=6.0;tcp://10.0.0.1,172.17.0.1:58761;tcp6://[fe80::2]:49087",
			Spec{Rank: 1, Size: 4, LocalRank: 1, LocalSize: 2,
				Addr: fmt.Sprint("10.0.0.1:", portOf("OMPI_MCA_ess_base_jobid=7")), Source: "Open MPI",
				Secret: fmt.Sprintf("Open MPI OMPI_MCA_ess_base_jobid=7 10.0.0.1:%d of 4 ab-cd",
					portOf("OMPI_MCA_ess_base_jobid=7"))}},
		{"Slurm", slurm + "SLURM_NODELIST=n[01-03,7] SLURM_LAUNCH_NODE_IPADDR=10.9.9.9 RINGO_COMM_SECRET=s",
			Spec{Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Addr: fmt.Sprint("n01:", slurmPort), Secret: "s",
				Source: "Slurm"}},
		{"Slurm, launch node", slurm + "SLURM_LAUNCH_NODE_IPADDR=10.9.9.9 RINGO_COMM_SECRET=s",
			Spec{Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Addr: fmt.Sprint("10.9.9.9:", slurmPort), Secret: "s",
				Source: "Slurm"}},
		{"Slurm, its own address first", slurm + "SLURM_NODELIST=a,b RINGO_COMM_ID=h:1 RINGO_COMM_SECRET=s",
			Spec{Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Addr: "h:1", Secret: "s", Source: "Slurm",
				Hosts: strings.Fields("a a a a b b b b")}},
		{"PMI", "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 RINGO_COMM_ID=h:1 RINGO_COMM_SECRET=s",
			Spec{Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Addr: "h:1", Secret: "s", Source: "PMI"}},
		{"PMI with a store", "PMI_RANK=1 PMI_SIZE=2 PMI_FD=6",
			Spec{Rank: 1, Size: 2, LocalRank: -1, Store: 6, Source: "PMI"}},
		{"Kubernetes", "JOB_COMPLETION_INDEX=2 RINGO_SIZE=3 MASTER_ADDR=job-0.job RINGO_COMM_SECRET=s",
			Spec{Rank: 2, Size: 3, LocalRank: -1, Addr: "job-0.job:29717", Secret: "s", Source: "Kubernetes"}},
		{"Kubernetes, completions", "JOB_COMPLETION_INDEX=2 COMPLETIONS=3 RINGO_COMM_ID=job-0.job:5 RINGO_COMM_SECRET=s",
			Spec{Rank: 2, Size: 3, LocalRank: -1, Addr: "job-0.job:5", Secret: "s", Source: "Kubernetes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, ok, err := FromEnv(vars(tt.env))
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, tt.want, s)
		})
	}
}

func TestSpecID(t *testing.T) {
	presume("10.0.0.1:4000", "s")
	want, err := IDFor("10.0.0.1:4000", "s")
	require.NoError(t, err)
	for _, addr := range []string{"10.0.0.1:4000", want.String()} {
		id, err := Spec{Size: 2, Addr: addr, Secret: "s"}.ID()
		require.NoError(t, err)
		require.Equal(t, want, id)
	}
}

// Any process that can reach the hub can join with a guessed secret. If processes
// of other machines can, the log has a warning.
func TestGuessable(t *testing.T) {
	for host, want := range map[string]string{"127.0.0.1": "INFO", "localhost": "INFO", "::1": "INFO",
		outwardIP().String(): "WARN"} {
		if host == "127.0.0.1" && want == "WARN" {
			continue // no other interface here
		}
		log := new(transcript.Transcript)
		o := ListenOptions{Log: slog.New(slog.NewTextHandler(log, nil))}
		s := Spec{Size: 2, Addr: net.JoinHostPort(host, freeport.Port(t)), Secret: "job 7", Guessable: true}
		presume(s.Addr, s.Secret)
		_, err := s.Join(within(t, 20*time.Millisecond), o, JoinOptions{})
		if id, _ := s.ID(); hubOf(id) == nil && host == "::1" {
			t.Log("no IPv6 here:", err)
			continue
		} else {
			Stop(id)
		}
		require.Error(t, err)
		require.Regexp(t, `level=`+want+` msg="rendezvous: the secret is derived`, log.String(), host)
		require.Equal(t, 1, strings.Count(log.String(), "derived"))
	}
}

func TestFromEnvNothing(t *testing.T) {
	for _, env := range []string{"", "RANK=1", "WORLD_SIZE=2", "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=1"} {
		s, ok, err := FromEnv(vars(env))
		require.NoError(t, err, env)
		require.False(t, ok, env)
		require.Zero(t, s, env)
	}
}

func TestIncomplete(t *testing.T) {
	require.Empty(t, Incomplete(vars("WORLD_SIZE=2")))
	require.Empty(t, Incomplete(vars("RANK=1 WORLD_SIZE=2")))
	require.Contains(t, Incomplete(vars("RANK=1")), "RANK is set, but WORLD_SIZE is not")
	require.Contains(t, Incomplete(vars("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=1")), "SLURM_PROCID is set, but "+
		"SLURM_STEP_ID is not, so Slurm did not start this process as a rank: start it with srun")
}

func TestFromEnvErrors(t *testing.T) {
	tests := []struct{ env, want string }{
		{"RINGO_COMM_ID=h:1", "RINGO_COMM_ID is set, but nothing says which rank this is: set RINGO_RANK and RINGO_SIZE"},
		{"RINGO_SIZE=2", "RINGO_SIZE is set, but nothing"},
		{"RINGO_RANK=1", "RINGO_SIZE is not set"},
		{"RINGO_RANK=2 RINGO_SIZE=2", `RINGO_RANK="2": want a number from 0 to 1`},
		{"RINGO_RANK=x RINGO_SIZE=2", `RINGO_RANK="x": want a number from 0 to 1`},
		{"RINGO_RANK=1 RINGO_SIZE=0", `RINGO_SIZE="0": want a number from 1 to 65536`},
		{"RINGO_RANK=1 RINGO_SIZE=2", "set RINGO_COMM_ID to host:port"},
		{"RINGO_RANK=1 RINGO_SIZE=2 RINGO_COMM_ID=h", `RINGO_COMM_ID="h": want host:port`},
		{"RINGO_RANK=1 RINGO_SIZE=2 RINGO_COMM_ID=:5", `RINGO_COMM_ID=":5": want host:port`},
		{"RINGO_RANK=1 RINGO_SIZE=2 RINGO_COMM_ID=h:99999", "want host:port"},
		{"RINGO_RANK=1 RINGO_SIZE=2 RINGO_COMM_ID=ringo:AAA", "RINGO_COMM_ID: id: text"},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=-1", `LOCAL_RANK="-1": want`},
		{"RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=3", `LOCAL_WORLD_SIZE="3": want a number from 1 to 2`},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1", "LOCAL_RANK=1, but 1 ranks are on this machine"},
		{"RANK=1 WORLD_SIZE=2", "torchrun does not say where rank 0 is"},
		{"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=x", `MASTER_PORT="x": want`},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
			"Open MPI does not say where rank 0 is: set RINGO_COMM_ID to host:port, or MASTER_ADDR to a host"},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_MCA_orte_hnp_uri=6.0;tcp://10.0.0.1:5 " +
			"OMPI_MCA_orte_local_daemon_uri=6.1;tcp://10.0.0.2:5",
			"rank 0 is not on the machine of mpirun, where the others look for it: set RINGO_COMM_ID"},
		{"PMI_RANK=1 PMI_SIZE=2 PMI_FD=x", `PMI_FD="x": want a number`},
		{"SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0", "names no host"},
		{"SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=2(x",
			`SLURM_TASKS_PER_NODE="2(x": want the tasks of each node`},
		{"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2", "PMI does not say where rank 0 is"},
		{"JOB_COMPLETION_INDEX=2", "environment (Kubernetes): RINGO_SIZE or COMPLETIONS is not set"},
	}
	for _, tt := range tests {
		t.Run(tt.env, func(t *testing.T) {
			_, ok, err := FromEnv(vars(tt.env))
			require.False(t, ok)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "n1": "n1", "n1,n2": "n1", "n[01-03,7]": "n01", "n[7,9-10]-ib,m[1-2]": "n7-ib", "r[1-2]n[3-4]": "r1n3",
		"n[": "", "n[1": "", "n]": "", "n[]": "", "n[-3]": "", "n[[1]]": "",
	} {
		require.Equal(t, want, firstHost(list), list)
	}
}

func TestURIHost(t *testing.T) {
	for uri, want := range map[string]string{
		"": "", "7.0": "", "7.0;tcp://10.0.0.1:5": "10.0.0.1", "7.0;tcp://10.0.0.1,10.1.0.1:5;tcp6://[fe80::1]:6": "10.0.0.1",
		"7.0;tcp6://[fe80::1,fe80::2]:6": "fe80::1", "7.0;tcp4://10.0.0.1:5": "10.0.0.1", "7.0;ud://3": "",
	} {
		require.Equal(t, want, uriHost(uri), uri)
	}
}

func TestTasksOf(t *testing.T) {
	for node, want := range []int{4, 4, 3, 1, 1, 1} {
		n, err := tasksOf(node, "4(x2),3,1(x3)")
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, bad := range []string{"", "0", "x", "4(x", "4(x0)", "4(xy)", "4)", ",", "4"} {
		_, err := tasksOf(1, bad)
		require.ErrorIs(t, err, errTasks, bad)
	}
}

func TestSpecJoinAlone(t *testing.T) {
	g, err := Spec{Size: 1}.Join(t.Context(), ListenOptions{}, JoinOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, g.Size())
	require.NoError(t, g.Close())
	_, err = Spec{Size: 2, Addr: "h:1"}.Join(t.Context(), ListenOptions{}, JoinOptions{})
	require.ErrorContains(t, err, "no secret")
}

func FuzzFromEnv(f *testing.F) {
	f.Add("RINGO_RANK=1 RINGO_SIZE=4 RINGO_COMM_ID=h:1")
	f.Add("SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_NODEID=1 SLURM_TASKS_PER_NODE=4(x2) SLURM_STEP_ID=0 " +
		"SLURM_NODELIST=n[01-03,7]")
	f.Fuzz(func(t *testing.T, text string) {
		s, ok, err := FromEnv(vars(text))
		if !ok {
			require.Zero(t, s)
			return
		}
		require.NoError(t, err)
		require.True(t, s.Rank >= 0 && s.Rank < s.Size, "%+v", s)
		require.True(t, s.Size == 1 || s.Addr != "" || s.Store != 0, "%+v", s)
	})
}

// slurmHosts is the machine of each rank, where Slurm lays ranks out in blocks.
func TestSlurmHosts(t *testing.T) {
	for _, c := range []struct {
		env  string
		size int
		want []string
	}{
		{"SLURM_STEP_NODELIST=n[09-10,7]-ib,m5 SLURM_NODELIST=x SLURM_STEP_TASKS_PER_NODE=2,1(x3)", 5,
			[]string{"n09-ib", "n09-ib", "n10-ib", "n7-ib", "m5"}},
		{"SLURM_NODELIST=a,b SLURM_TASKS_PER_NODE=1(x2) SLURM_DISTRIBUTION=block:cyclic", 2, []string{"a", "b"}},
		{"SLURM_NODELIST=a,b SLURM_TASKS_PER_NODE=1(x2) SLURM_DISTRIBUTION=cyclic", 2, nil},
		{"SLURM_NODELIST=a,b SLURM_TASKS_PER_NODE=1(x2)", 3, nil},
		{"SLURM_NODELIST=a,b SLURM_TASKS_PER_NODE=2(x2)", 3, nil},
		{"SLURM_NODELIST=a,b SLURM_TASKS_PER_NODE=2", 4, nil},
		{"SLURM_NODELIST=n[1-2]s[3-4] SLURM_TASKS_PER_NODE=1(x4)", 4, nil},
		{"SLURM_NODELIST=n[1-2 SLURM_TASKS_PER_NODE=1(x2)", 2, nil},
		{"SLURM_NODELIST=n[2-1] SLURM_TASKS_PER_NODE=1(x2)", 2, nil},
		{"SLURM_NODELIST=n[0-99999999] SLURM_TASKS_PER_NODE=1(x2)", 2, nil},
		{"", 2, nil},
	} {
		require.Equal(t, c.want, env{vars(c.env)}.slurmHosts(c.size), c.env)
	}
}

// TLSFromEnv reads RINGO_TLS as ranks do.
func TestTLSFromEnv(t *testing.T) {
	for word, want := range map[string]bool{"": false, "0": false, "false": false, "Off": false, "1": true, "yes": true} {
		tls, err := TLSFromEnv(func(name string) string { return map[string]string{"RINGO_TLS": word}[name] })
		require.NoError(t, err, word)
		require.Equal(t, want, tls != nil, word)
	}
	_, err := TLSFromEnv(func(name string) string { return map[string]string{"RINGO_TLS": "perhaps"}[name] })
	require.ErrorContains(t, err, `RINGO_TLS="perhaps"`)
}
