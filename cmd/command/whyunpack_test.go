package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func zipped(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

// taped is a tar of the files of a folder, and of entries that an attacker would add.
func taped(t *testing.T, dir string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, b []byte, at time.Time) {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: 0o600,
			ModTime: at}))
		_, err := w.Write(b)
		require.NoError(t, err)
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "nccl_trace_rank_9",
		Linkname: "/etc/passwd"}))
	add("../../escaped", []byte("none"), time.Time{})
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for i, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		name := "node/" + e.Name()
		if i == 0 {
			name, b = name+".gz", zipped(t, b)
		}
		add(name, b, info.ModTime())
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// Dumps in archives, by a pattern and by standard input have the same answer as dumps in a folder.
func TestWhyPacked(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dumps, dir := t.TempDir(), t.TempDir()
	writeDumps(t, dumps)
	tape := taped(t, dumps)
	put := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, b, 0o600))
		return name
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for _, word := range []string{
		put("a.tar", tape), put("a.tgz", zipped(t, tape)), filepath.Join(dumps, "nccl_trace_rank_[0-2]"),
		filepath.Dir(put("folder/run.tar.gz", zipped(t, tape))), "-",
	} {
		in, err := os.Open(filepath.Join(dir, "a.tgz"))
		require.NoError(t, err)
		os.Stdin = in
		var out, errs strings.Builder
		require.Equal(t, 3, ringoMain(t.Context(), []string{"why", word}, &out, &errs), "%s: %s", word, errs.String())
		require.Equal(t, dumpsAnswer, out.String(), word)
		in.Close()
	}
	torn := put("torn.tgz", zipped(t, tape)[:200])
	var out, errs strings.Builder
	require.Equal(t, 1, ringoMain(t.Context(), []string{"why", torn}, &out, &errs))
	require.Contains(t, errs.String(), "torn.tgz: unexpected EOF")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left, "what was unpacked is gone")
}

// An archive that unpacks to too many bytes, files or levels gives an error.
func TestUnpackBounds(t *testing.T) {
	dir := t.TempDir()
	bomb := filepath.Join(dir, "bomb.gz")
	require.NoError(t, os.WriteFile(bomb, zipped(t, make([]byte, 1<<20)), 0o600))
	writeDumps(t, dir)
	tape := filepath.Join(dir, "many.tar")
	require.NoError(t, os.WriteFile(tape, taped(t, dir), 0o600))
	nested := []byte("none")
	for range mostNested + 1 {
		nested = zipped(t, nested)
	}
	deep := filepath.Join(dir, "deep.gz")
	require.NoError(t, os.WriteFile(deep, nested, 0o600))
	for _, c := range []struct {
		word  string
		bytes int64
		files int
		want  string
	}{
		{bomb, 1 << 16, 10, bomb + ": it unpacks to more than is read"},
		{"-", 1 << 16, 10, "standard input: it unpacks to more than is read"},
		{tape, 1 << 30, 2, tape + ": "},
		{deep, 1 << 30, 10, "an archive in an archive in an archive"},
	} {
		u := &unpacker{dir: t.TempDir(), bytes: c.bytes, files: c.files}
		_, wrong := u.find([]string{c.word}, io.LimitReader(zeros{}, 1<<20))
		require.Len(t, wrong, 1, c.word)
		require.ErrorContains(t, wrong[0], c.want)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
