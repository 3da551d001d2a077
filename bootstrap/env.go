package bootstrap

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/setting"
)

// storeGap lies between torchrun's MASTER_PORT, where its own store listens,
// and our hub. It is wide because users number the ports of neighbouring jobs
// one by one. From the usual 29500 it leads to a port that the kernel does not
// hand out by itself (those begin at 32768).
const storeGap = 2000

// defaultPort is the hub's port where only a host is known, and no job.
const defaultPort = 29717

// FromEnv reads the Spec from the environment; false if no launcher has set one. Of
// these launchers it takes the first whose variable for the rank is set:
//
//	          rank                 size                 local rank, size                 hub of rank 0
//	ringo     RINGO_RANK           RINGO_SIZE           RINGO_LOCAL_RANK, _SIZE          RINGO_COMM_ID
//	torchrun  RANK                 WORLD_SIZE           LOCAL_RANK, LOCAL_WORLD_SIZE     MASTER_ADDR, MASTER_PORT+2000
//	Open MPI  OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK, …    that of OMPI_MCA_orte_hnp_uri
//	Slurm     SLURM_PROCID         SLURM_NTASKS         SLURM_LOCALID, …TASKS_PER_NODE   first of SLURM_NODELIST
//	PMI       PMI_RANK             PMI_SIZE             MPI_LOCALRANKID, MPI_LOCALNRANKS rank 0 says it in the store behind PMI_FD
//	Kubernetes JOB_COMPLETION_INDEX RINGO_SIZE or COMPLETIONS —                          —
//
// For each launcher RINGO_COMM_ID, as host:port or as the text of an ID, overrides
// the hub of the last column; without it, MASTER_ADDR with MASTER_PORT does.
// torchrun's own store listens on MASTER_PORT, hence the 2000, which is subtracted
// where adding would leave no valid port. Where a host is known but no port, the
// port is derived from the job's identifier. Open MPI 5 does not tell where mpirun is: unless
// all ranks are on one machine, one of the variables must be set.
//
// The secret is RINGO_COMM_SECRET. Without it, Open MPI's launcher gives a random secret
// (OMPI_MCA_orte_precondition_transports), and the ID in PMI's store is random. For the other launchers the secret is
// derived from the job's identifiers, and Guessable: a process that can reach the port and knows or guesses the job's
// number can join. That suffices only on a network without strangers.
func FromEnv(getenv func(string) string) (Spec, bool, error) {
	e := env{get: getenv}
	for _, l := range launchers {
		if !e.started(l) {
			continue
		}
		s, err := e.spec(l)
		if err != nil {
			return Spec{}, false, fmt.Errorf("environment (%s): %w", l.name, err)
		}
		return s, true, nil
	}
	for _, v := range []string{"RINGO_COMM_ID", "RINGO_SIZE"} {
		if getenv(v) != "" {
			return Spec{}, false,
				fmt.Errorf("environment: %s is set, but nothing says which rank this is: set RINGO_RANK and RINGO_SIZE", v)
		}
	}
	return Spec{}, false, nil
}

// Incomplete says which variable is missing where FromEnv finds no launcher and one has set another, "" if none has.
func Incomplete(getenv func(string) string) string {
	for _, l := range launchers {
		if l.also != "" && getenv(l.rank) != "" && getenv(l.also) == "" {
			return fmt.Sprintf("%s is set, but %s is not, so %s did not start this process as a rank: start it with "+
				"%s, or set RINGO_RANK, RINGO_SIZE and RINGO_COMM_ID", l.rank, l.also, l.name, l.command)
		}
	}
	return ""
}

// ID is the ID of the hub that the spec names.
func (s Spec) ID() (ID, error) {
	if strings.HasPrefix(s.Addr, idText) {
		return ParseID(s.Addr)
	}
	return IDFor(s.Addr, s.Secret)
}

// Join is package function Join for the Spec. Rank 0 serves the ID first, unless Addr is the text of an ID.
func (s Spec) Join(ctx context.Context, lo ListenOptions, jo JoinOptions) (Group, error) {
	if s.Size == 1 && s.Addr == "" {
		return Local(1)[0], nil
	}
	id, err := s.served(ctx, lo)
	if err != nil {
		return nil, err
	}
	return Join(ctx, id, s.Rank, s.Size, jo)
}

// served is the ID at which the ranks meet, and serves it if this is rank 0 and nobody else does.
func (s Spec) served(ctx context.Context, lo ListenOptions) (ID, error) {
	if s.Store != 0 {
		id, err := stored(ctx, s, lo)
		if err != nil {
			return ID{}, fmt.Errorf("join: %s: %w: or set RINGO_COMM_ID to host:port of rank 0", s.Source, err)
		}
		return id, nil
	}
	id, err := s.ID()
	if err != nil {
		return ID{}, err
	}
	if s.Rank == 0 && !strings.HasPrefix(s.Addr, idText) {
		if s.Guessable {
			level := slog.LevelWarn
			if isLoopback(id.Addr()) {
				level = slog.LevelInfo // only processes of this machine can reach it
			}
			lo.logger().Log(ctx, level,
				"rendezvous: the secret is derived from the job's names; where strangers can reach the port, set RINGO_COMM_SECRET",
				"addr", id.Addr())
		}
		if err := Serve(id, lo); err != nil {
			return ID{}, err
		}
	}
	return id, nil
}

// TLSFromEnv is the TLS that the environment asks for, nil for none: RINGO_TLS is true, or
// RINGO_TLS_CERT, RINGO_TLS_KEY and RINGO_TLS_CA name certificates (see NewTLS). It is for
// launchers that serve an ID; ranks take their TLS from a Config.
func TLSFromEnv(getenv func(string) string) (*TLS, error) {
	cert, key, ca := getenv("RINGO_TLS_CERT"), getenv("RINGO_TLS_KEY"), getenv("RINGO_TLS_CA")
	if on, err := setting.TLS(getenv("RINGO_TLS"), cert, key, ca); err != nil || !on {
		return nil, err
	}
	return NewTLS(cert, key, ca)
}

// isLoopback reports whether only this machine can reach "host:port".
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// A launcher is a row of FromEnv's table. Of several names the first that is
// set counts.
type launcher struct {
	name                 string
	rank                 string
	sizes                []string
	localRank, localSize []string
	also                 string   // must be set too for this launcher
	command              string   // what starts ranks with both
	job                  []string // identify the job
	random               string   // a secret of the job, which the launcher tells the job's processes alone
}

var launchers = []launcher{
	{name: "ringo", rank: "RINGO_RANK", sizes: []string{"RINGO_SIZE"},
		localRank: []string{"RINGO_LOCAL_RANK", "LOCAL_RANK"}, localSize: []string{"RINGO_LOCAL_SIZE", "LOCAL_WORLD_SIZE"}},
	{name: "torchrun", rank: "RANK", also: "WORLD_SIZE", command: "torchrun", sizes: []string{"WORLD_SIZE"},
		localRank: []string{"LOCAL_RANK"}, localSize: []string{"LOCAL_WORLD_SIZE"},
		job: []string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
	{name: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", sizes: []string{"OMPI_COMM_WORLD_SIZE"},
		localRank: []string{"OMPI_COMM_WORLD_LOCAL_RANK"}, localSize: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		job: []string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}, random: "OMPI_MCA_orte_precondition_transports"},
	// A batch script has a SLURM_PROCID too, but only tasks have a step.
	{name: "Slurm", rank: "SLURM_PROCID", also: "SLURM_STEP_ID", command: "srun",
		sizes:     []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
		localRank: []string{"SLURM_LOCALID"},
		job:       []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}},
	{name: "PMI", rank: "PMI_RANK", sizes: []string{"PMI_SIZE"},
		localRank: []string{"MPI_LOCALRANKID"}, localSize: []string{"MPI_LOCALNRANKS"}},
	{name: "Kubernetes", rank: "JOB_COMPLETION_INDEX", sizes: []string{"RINGO_SIZE", "COMPLETIONS"}},
}

func (e env) started(l launcher) bool {
	return e.get(l.rank) != "" && (l.also == "" || e.get(l.also) != "")
}

func (e env) spec(l launcher) (s Spec, err error) {
	s.Source = l.name
	if s.Size, err = e.number(1, rendezvous.MaxRanks, l.sizes...); err != nil {
		return s, err
	}
	if s.Rank, err = e.number(0, s.Size-1, l.rank); err != nil {
		return s, err
	}
	s.LocalRank = -1
	if e.first(l.localRank...) != "" {
		if s.LocalRank, err = e.number(0, s.Size-1, l.localRank...); err != nil {
			return s, err
		}
	}
	if e.first(l.localSize...) != "" {
		if s.LocalSize, err = e.number(1, s.Size, l.localSize...); err != nil {
			return s, err
		}
	}
	if l.name == "Slurm" {
		if s.LocalSize, err = e.slurmLocalSize(); err != nil {
			return s, err
		}
		s.Hosts = e.slurmHosts(s.Size)
	}
	if s.LocalSize > 0 && s.LocalRank >= s.LocalSize {
		return s, fmt.Errorf("%s=%d, but %d ranks are on this machine", e.name(l.localRank...), s.LocalRank, s.LocalSize)
	}
	if s.Addr, err = e.addr(l, s); err != nil {
		return s, err
	}
	if s.Addr == "" && s.Size > 1 { // addr has checked that there is a store
		if s.Store, err = e.number(1, 1<<20, "PMI_FD"); err != nil {
			return s, err
		}
	}
	s.Secret = e.get("RINGO_COMM_SECRET")
	if s.Secret == "" && s.Store == 0 && !strings.HasPrefix(s.Addr, idText) {
		s.Secret, s.Guessable = e.derived(l, s), e.first(l.random) == ""
	}
	return s, nil
}

// checkAddr is the fault of a, the value of RINGO_COMM_ID; nil if there is none.
func checkAddr(a string) error {
	if strings.HasPrefix(a, idText) {
		if _, err := ParseID(a); err != nil {
			return fmt.Errorf("RINGO_COMM_ID: %w", err)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(a)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || host == "" || n < 1 || n > 65535 {
		return fmt.Errorf("RINGO_COMM_ID=%q: want host:port of rank 0", a)
	}
	return nil
}

// addr is where rank 0 serves; empty if there is only one rank, or if rank 0 leaves its ID in a store.
func (e env) addr(l launcher, s Spec) (string, error) {
	if a := e.get("RINGO_COMM_ID"); a != "" {
		if err := checkAddr(a); err != nil {
			return "", err
		}
		return a, nil
	}
	if s.Size == 1 {
		return "", nil
	}
	job := e.jobID(l)
	host := e.get("MASTER_ADDR")
	if host != "" {
		if e.get("MASTER_PORT") != "" {
			port, err := e.number(1, 65535, "MASTER_PORT")
			if err != nil {
				return "", err
			}
			if port += storeGap; port > 65535 {
				port -= 2 * storeGap
			}
			return net.JoinHostPort(host, strconv.Itoa(port)), nil
		}
	} else if l.name == "Slurm" {
		list := e.first("SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST")
		if host = firstHost(list); host == "" {
			host = e.get("SLURM_LAUNCH_NODE_IPADDR")
		}
		if host == "" {
			return "", fmt.Errorf("SLURM_NODELIST=%q names no host: set RINGO_COMM_ID to host:port of rank 0", list)
		}
	} else if s.LocalSize == s.Size && job != "" {
		host = "127.0.0.1"
	} else if l.name == "Open MPI" {
		var err error
		if host, err = e.mpirunHost(s.Rank); err != nil {
			return "", err
		}
	} else if l.name == "PMI" && e.get("PMI_FD") != "" {
		return "", nil
	}
	if host == "" {
		if l.name == "ringo" {
			return "", errors.New("RINGO_RANK and RINGO_SIZE say nothing of where rank 0 is: set RINGO_COMM_ID to " +
				"host:port of rank 0, the same for every rank")
		}
		return "", fmt.Errorf("%s does not say where rank 0 is: set RINGO_COMM_ID to host:port, or MASTER_ADDR to a host, "+
			"of rank 0, the same for every rank", l.name)
	}
	return net.JoinHostPort(host, strconv.Itoa(portOf(job))), nil
}

// portOf spreads jobs over the ports 20000 to 29999, below those that kernels
// hand out.
func portOf(job string) int {
	if job == "" {
		return defaultPort
	}
	h := sha256.Sum256([]byte(job))
	return 20000 + (int(h[0])<<8|int(h[1]))%10000
}

func (e env) jobID(l launcher) string {
	var id []string
	for _, v := range l.job {
		if e.get(v) != "" {
			id = append(id, v+"="+e.get(v))
		}
	}
	return strings.Join(id, " ")
}

func (e env) derived(l launcher, s Spec) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s of %d %s", l.name, e.jobID(l), s.Addr, s.Size, e.first(l.random)))
}
