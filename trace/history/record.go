package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/trace/judge"
)

// A Record is what one rank knows of its communicator: its last calls, where it is, and why the
// communicator has failed. It is written as JSON.
type Record struct {
	Comm       string // identifies the communicator, the same on all ranks
	Name       string `json:",omitempty"` // the program's name of the communicator
	Rank, Size int
	Host       string
	Pid        int
	Time       time.Time // when this was so; of a Cause: when this rank learned of it
	State      judge.State
	Waited     time.Duration `json:",omitempty"` // in the call that it is in, as far as is known
	Still      time.Duration `json:",omitempty"` // of Waited: since data moved last, as far as is known
	Cause      string        `json:",omitempty"` // why the communicator has failed
	Culprits   []int         `json:",omitempty"` // who is to blame for that
	Candidates []int         `json:",omitempty"` // without Culprits: who may be
	Path       bool          `json:",omitempty"` // nothing passes between the two Culprits, which are well
	Late       string        `json:",omitempty"` // of a Cause that a call ran out of time: the Reason, as a word
	Silent     []int         `json:",omitempty"` // ranks that did not answer the group's question where they are
	After      string        `json:",omitempty"` // the failed communicator of which Shrink has made this one
	Origin     string        `json:",omitempty"` // the communicator of which Members have a number; "" if none
	OriginSize int           `json:",omitempty"` // its ranks
	Members    Members       `json:",omitempty"` // the processes, by rank; empty if not known
	Beside     []string      `json:",omitempty"` // other communicators in a call of which this process waits too
	Failed     []string      // other communicators of this process that had failed before; nil if not known
	Total      uint64        // calls since the beginning
	Calls      []Call        // the last of them, oldest first
}

// A Call is one of a rank's calls.
type Call struct {
	Number uint64    `json:",omitempty"` // among the collectives; 0 for a Send or Recv
	What   string    // "AllReduce(count 4, float32, sum)", "Send(…) to rank 2"
	Time   time.Time `json:",omitzero"` // when it began; zero where unknown, as for most calls
}

// Files matches the names that Write gives to files.
const Files = "ringo-*-rank*.json"

// FileOf is the name of the file that a rank of a communicator writes.
func FileOf(comm string, rank int) string { return fmt.Sprintf("ringo-%s-rank%d.json", comm, rank) }

// owner is the communicator and the rank whose file has a name, "" if it is no history's name.
func owner(file string) (comm string, rank int) {
	name := strings.TrimPrefix(filepath.Base(file), "ringo-")
	i := strings.LastIndex(name, "-rank")
	if is, _ := filepath.Match(Files, filepath.Base(file)); !is || i < 0 {
		return "", 0
	}
	rank, err := strconv.Atoi(strings.TrimSuffix(name[i+len("-rank"):], ".json"))
	if err != nil || rank < 0 || rank >= maxSize {
		return "", 0
	}
	return given.Printable(name[:i]), rank
}

// Write puts a record in a folder, and returns the file. The folder is made if it is not there, but not the folders
// around it. An older record of the same rank is replaced.
func (r *Record) Write(dir string) (file string, err error) {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("history: %w", err)
	}
	file = filepath.Join(dir, FileOf(r.Comm, r.Rank))
	part, err := os.CreateTemp(dir, filepath.Base(file)+".*") // a name of its own: a failure and a signal may come at once
	if err != nil {
		return "", fmt.Errorf("history: %w", err)
	}
	_, err = part.Write(b)
	err = errors.Join(err, part.Chmod(0o644), part.Close()) // not by name: others may write to the folder
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		os.Remove(part.Name())
		return "", fmt.Errorf("history: %w", err)
	}
	return file, nil
}

// An Unreadable is a file that holds no record, or a part of one: it may have been cut off, or be copied just now.
type Unreadable struct {
	File string
	Comm string // "" if the name is not that of a history
	Rank int
	Err  error
}

func (u *Unreadable) Error() string { return fmt.Sprintf("history: %s: %v", u.File, u.Err) }
func (u *Unreadable) Unwrap() error { return u.Err }

// Read returns the records of files, and of the files in folders whose names match Files. A file that holds no record
// is left out, and skipped has an *Unreadable: one rank may have met a full disk. It is an error if no record is left.
func Read(paths ...string) (records []Record, skipped []error, err error) {
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			return nil, nil, fmt.Errorf("history: %w", err)
		} else if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, Files)); err != nil {
				return nil, nil, fmt.Errorf("history: %w", err)
			}
			if len(files) == 0 {
				return nil, nil, fmt.Errorf("history: %s: no %s here: %w", path, Files, fs.ErrNotExist)
			}
		}
		for _, file := range files {
			r, err := read(file)
			if err != nil {
				comm, rank := owner(file)
				skipped = append(skipped, &Unreadable{File: file, Comm: comm, Rank: rank, Err: err})
				continue
			}
			records = append(records, *r)
		}
	}
	if len(records) == 0 {
		return nil, nil, errors.Join(skipped...)
	}
	return records, skipped, nil
}

// read gives the record of a file.
func read(file string) (*Record, error) {
	b, err := given.Read(file)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err = json.Unmarshal(b, r); err == nil {
		err = r.check()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// maxSize bounds the ranks of a record that is read.
const maxSize = 1 << 17

// check finds out what is wrong with a record, and makes its texts printable. A State that cannot be is taken for none.
func (r *Record) check() error {
	if r.Size < 1 || r.Size > maxSize || r.Rank < 0 || r.Rank >= r.Size || r.OriginSize < 0 || r.OriginSize > maxSize {
		return errors.New("not a rank's history")
	}
	for _, c := range slices.Concat(r.Culprits, r.Candidates, r.Silent) {
		if c < 0 || c >= r.Size {
			return errors.New("not a rank's history")
		}
	}
	if s := &r.State; !s.Heard || s.Peer < -1 || s.Peer >= r.Size {
		*s = judge.State{Peer: -1}
	}
	r.State.Rank = r.Rank
	if len(r.Members) != r.Size {
		r.Members, r.Origin, r.OriginSize = nil, "", 0
	}
	for i := range r.Members {
		if m := &r.Members[i]; m.Number >= r.OriginSize {
			m.Number = -1
		}
	}
	for _, text := range []*string{&r.Comm, &r.Name, &r.Host, &r.Cause, &r.Late, &r.After, &r.Origin} { // they are printed
		*text = given.Printable(*text)
	}
	for _, ids := range [][]string{r.Beside, r.Failed} {
		for i := range ids {
			ids[i] = given.Printable(ids[i])
		}
	}
	for i := range r.Calls {
		r.Calls[i].What = given.Printable(r.Calls[i].What)
	}
	return nil
}

// Ranks writes ranks as a person does: "rank 2", "ranks 0, 1 and 3".
func Ranks(ranks []int) string {
	const most = 16
	var words []string
	for i, r := range ranks {
		if i == most-1 && len(ranks) > most {
			words = append(words, fmt.Sprintf("%d more", len(ranks)-i))
			break
		}
		words = append(words, fmt.Sprint(r))
	}
	switch n := len(words); n {
	case 0:
		return "no rank"
	case 1:
		return "rank " + words[0]
	default:
		return "ranks " + strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// Spell rounds a time as people do.
func Spell(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
