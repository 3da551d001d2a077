package capi

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
)

var aKey = strings.Repeat("k", shortest)

// keyed are libraries of two processes that have given keys, "" for none.
func keyed(t *testing.T, settings map[string]string, keys ...string) []*Library {
	env := map[string]string{"RINGO_HOST": "1", "RINGO_JOIN_TIMEOUT": "20s", "NCCL_SHM_DISABLE": "1"}
	for name, v := range settings {
		env[name] = v
	}
	var libraries []*Library
	for _, key := range keys {
		l := with(env)
		if key != "" {
			require.NoError(t, l.SetEncryption(byKey, key))
		}
		libraries = append(libraries, l)
	}
	return libraries
}

// initBoth has two libraries make a communicator of an ID.
func initBoth(ls []*Library, id bootstrap.ID) (comms [2]uintptr, errs [2]error) {
	var wg sync.WaitGroup
	for rank, l := range ls {
		wg.Go(func() { comms[rank], errs[rank] = l.InitRank(0, 2, rank, []bootstrap.ID{id}, nil) })
	}
	wg.Wait()
	return comms, errs
}

// TestEncryption: ranks that have given the same key talk over TLS, under every kind of ID.
func TestEncryption(t *testing.T) {
	t.Parallel()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, port.Close())
	for _, settings := range []map[string]string{nil, {"NCCL_COMM_ID": port.Addr().String()}, {"RINGO_TLS": "0"}} {
		ls := keyed(t, settings, aKey, aKey)
		id, err := ls[0].UniqueID()
		require.NoError(t, err)
		comms, errs := initBoth(ls, id)
		require.NoError(t, errs[0])
		require.NoError(t, errs[1])
		cfg, err := ls[1].config()
		require.NoError(t, err)
		require.Equal(t, "by the job's key", cfg.Encryption())
		data := [2][]int32{{1}, {2}}
		var wg sync.WaitGroup
		for rank, l := range ls {
			wg.Go(func() { errs[rank] = l.Do(0, comms[rank], allReduce(data[rank])) })
		}
		wg.Wait()
		require.Equal(t, [2]error{}, errs)
		require.Equal(t, [2][]int32{{3}, {3}}, data)
		for rank, l := range ls {
			require.NoError(t, l.Destroy(comms[rank]))
		}
	}
}

// TestEncryptionRefuses: a process with the unique ID but without the key, or with another, cannot join.
func TestEncryptionRefuses(t *testing.T) {
	for name, key := range map[string]string{"none": "", "another": strings.Repeat("x", shortest)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ls := keyed(t, map[string]string{"RINGO_JOIN_TIMEOUT": "500ms"}, aKey, key)
			id, err := ls[0].UniqueID()
			require.NoError(t, err)
			_, errs := initBoth(ls, id)
			require.Error(t, errs[0])
			require.Error(t, errs[1])
		})
	}
}

func TestSetEncryption(t *testing.T) {
	l := onHost()
	refused(t, l.SetEncryption(byKey, aKey[1:]), InvalidArgument, "a key of 31 bytes: want 32 random ones or more")
	refused(t, l.SetEncryption(7, aKey), InvalidArgument,
		"mode 7 is neither NCCL_ENCRYPTION_MODE_NONE nor NCCL_ENCRYPTION_MODE_PSK")
	id, err := bootstrap.IDFor("127.0.0.1:1", "secret")
	require.NoError(t, err)
	same, err := l.sealed(id)
	require.NoError(t, err)
	require.True(t, id == same)
	require.NoError(t, l.SetEncryption(byKey, aKey))
	other, err := l.sealed(id)
	require.NoError(t, err)
	require.False(t, id == other)
	require.Equal(t, id.Addr(), other.Addr())
	again, err := l.sealed(other)
	require.NoError(t, err)
	require.True(t, id == again)
	require.NoError(t, l.SetEncryption(inClear, ""))
	cfg, err := l.config()
	require.NoError(t, err)
	require.False(t, cfg.TLS)
}
