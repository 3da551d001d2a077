package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Hydra, the launcher of MPICH and Intel MPI, gives each process a descriptor, PMI_FD, behind which
// it keeps keys and values for the job (PMI version 1). A request is a line, and so is its answer:
//
//	cmd=init pmi_version=1 pmi_subversion=1    cmd=response_to_init rc=0 …
//	cmd=get_my_kvsname                         cmd=my_kvsname kvsname=NAME
//	cmd=put kvsname=NAME key=K value=V         cmd=put_result rc=0 …
//	cmd=barrier_in                             cmd=barrier_out     when all ranks have come
//	cmd=get kvsname=NAME key=K                 cmd=get_result rc=0 value=V
//	cmd=finalize                               cmd=finalize_ack
//
// The trap: a process that uses MPI too needs the descriptor for MPI, and must set RINGO_COMM_ID.

// pmiKey is the key under which rank 0 leaves its ID.
const pmiKey = "ringo-id"

// conversation is the result of this process's talk with its launcher, of which there can be only one.
var conversation struct {
	sync.Mutex
	held bool
	id   ID
	err  error
}

// stored is the ID that rank 0 serves and leaves in the launcher's store. On rank 0 the
// hub is served when stored returns.
func stored(ctx context.Context, s Spec, o ListenOptions) (ID, error) {
	c := &conversation
	c.Lock()
	defer c.Unlock()
	if !c.held {
		c.held = true
		c.id, c.err = converse(ctx, s, o)
	} else if s.Rank == 0 && c.err == nil {
		return c.id, Serve(c.id, o)
	}
	return c.id, c.err
}

func converse(ctx context.Context, s Spec, o ListenOptions) (id ID, err error) {
	f := os.NewFile(uintptr(s.Store), "PMI_FD")
	conn, err := net.FileConn(f) // a duplicate of the descriptor
	f.Close()
	if err != nil {
		return ID{}, fmt.Errorf("PMI_FD=%d: %w", s.Store, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if s.Rank == 0 {
		o.Secret = s.Secret
		if s.LocalSize == s.Size {
			o.Addr = "127.0.0.1:0"
		}
		if id, err = NewID(o); err != nil {
			return ID{}, err
		}
		defer func(served ID) {
			if err != nil {
				Stop(served)
			}
		}(id)
	}
	id, err = exchange(conn, id)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("not all ranks have asked the launcher where rank 0 is: %w", context.Cause(ctx))
	}
	return id, err
}

// exchange returns rank 0's ID on all ranks. id is the zero ID on ranks other than 0.
func exchange(conn io.ReadWriter, id ID) (ID, error) {
	p := pmi{w: conn, r: bufio.NewReader(conn)}
	p.ask("init pmi_version=1 pmi_subversion=1", "response_to_init")
	name := p.ask("get_my_kvsname", "my_kvsname")["kvsname"]
	if id != (ID{}) {
		p.ask("put kvsname="+name+" key="+pmiKey+" value="+id.String(), "put_result")
	}
	p.ask("barrier_in", "barrier_out")
	text := p.ask("get kvsname="+name+" key="+pmiKey, "get_result")["value"]
	p.ask("finalize", "finalize_ack")
	if p.err != nil {
		return ID{}, p.err
	}
	return ParseID(text)
}

// A pmi is a conversation with the launcher. After the first error it sends nothing more.
type pmi struct {
	w   io.Writer
	r   *bufio.Reader
	err error
}

// ask sends a request and returns the fields of the answer, whose command must be want.
func (p *pmi) ask(request, want string) map[string]string {
	if p.err != nil {
		return nil
	}
	if _, p.err = io.WriteString(p.w, "cmd="+request+"\n"); p.err != nil {
		return nil
	}
	line, err := p.r.ReadSlice('\n')
	if err != nil {
		p.err = err
		return nil
	}
	f := map[string]string{}
	for field := range strings.FieldsSeq(string(line)) {
		if k, v, ok := strings.Cut(field, "="); ok {
			f[k] = v
		}
	}
	if rc := f["rc"]; f["cmd"] != want || rc != "" && rc != "0" {
		p.err = errors.New("the launcher answers " + strings.TrimSpace(string(line)))
	}
	return f
}
