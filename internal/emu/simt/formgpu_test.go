package simt_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/tier"
)

var (
	record = flag.String("record", "",
		"with REQUIRE=cuda: write the golden files into this folder, and what the driver refuses into its report.txt")
	recorded = flag.String("machine", "", "what the recorded files say of the machine")
)

// TestFormsOnGPU runs the kernels of all forms on a GPU, the emulated one or with
// REQUIRE=cuda a real one, and compares with the golden files, or writes them.
func TestFormsOnGPU(t *testing.T) {
	g := newGPU(t, gputest.Driver(t, gputest.Emu(cudaemu.Config{Plain: true, Lazy: true})))
	var report []string
	for _, family := range familyNames() {
		list := forms(family)
		if *record == "" {
			list = tier.Some(6, list)
		}
		results, errs := g.runAll(list)
		if *record != "" {
			require.True(t, gputest.OnGPU(), "-record is for a real GPU: set REQUIRE=cuda")
			require.NoError(t, writeGoldens(*record, family, describe(t, g), list, results))
			report = append(report, fmt.Sprintf("%s: %d forms, %d refused", family, len(list), len(errs)))
			for _, err := range errs {
				report = append(report, err.Error())
			}
			continue
		}
		t.Run(family, func(t *testing.T) {
			require.Empty(t, errs)
			gold := must.Get(readGoldens(filepath.Join("testdata", "forms"), family))
			for i, f := range list {
				t.Run(f.id(), func(t *testing.T) { compare(t, &f, results[i], gold.results[f.id()]) })
			}
		})
	}
	if *record != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*record, "report.txt"), []byte(strings.Join(report, "\n")+"\n"), 0o644))
	}
}

// describe names the machine.
func describe(t *testing.T, g *gpu) []string {
	name := must.Get(g.d.DeviceGetName(g.dev))
	version := must.Get(g.d.DriverGetVersion())
	module, _ := os.ReadFile("/proc/driver/nvidia/version")
	first, _, _ := strings.Cut(string(module), "\n")
	return []string{
		"results of PTX instructions, recorded by REQUIRE=cuda go test ./internal/emu/simt -run TestFormsOnGPU -record DIR",
		"machine: " + *recorded,
		"gpu: " + name,
		fmt.Sprintf("cuda driver: %d.%d", version/1000, version%1000/10),
		"kernel driver: " + strings.Join(strings.Fields(strings.TrimPrefix(first, "NVRM version:")), " "),
		"date: " + time.Now().UTC().Format(time.DateOnly),
	}
}

// TestGoldens compares results of Lookup's Ops with the results of a GPU.
func TestGoldens(t *testing.T) {
	for _, family := range familyNames() {
		if family == "atomic" {
			continue // memory, see TestFormsOnGPU
		}
		t.Run(family, func(t *testing.T) {
			g := must.Get(readGoldens(filepath.Join("testdata", "forms"), family))
			for _, f := range forms(family) {
				t.Run(f.id(), func(t *testing.T) {
					want, ok := g.results[f.id()]
					require.True(t, ok, "not recorded with these cases: record on a GPU, see TestFormsOnGPU")
					compare(t, &f, computeForm(t, &f, cases(&f)), want)
				})
			}
		})
	}
}

// compare shows the first results that differ from the recorded ones.
func compare(t *testing.T, f *form, got, want [][]uint64) {
	rows := cases(f)
	require.Len(t, want, len(rows), "not recorded with these cases: record on a GPU, see TestFormsOnGPU")
	var wrong []string
	for i := range rows {
		if !slices.Equal(got[i], want[i]) {
			wrong = append(wrong, fmt.Sprintf("case %d: %#x gives %#x, recorded was %#x", i, rows[i], got[i], want[i]))
		}
	}
	if n := len(wrong); n > 0 {
		t.Fatalf("%s: %d of %d cases differ\n%s", f.id(), n, len(rows), strings.Join(wrong[:min(n, 5)], "\n"))
	}
}

// computeForm computes a form's results in Go. Signed results of cvt are in registers as wide as in the kernels.
func computeForm(t *testing.T, f *form, rows [][]uint64) [][]uint64 {
	op := must.Get(alu.Lookup(f.instr()))
	require.Equal(t, len(f.dst), op.Dsts)
	require.Equal(t, len(f.src)+len(f.imm[:min(1, len(f.imm))]), op.Srcs)
	dst, src := lanes(op.Dsts), lanes(op.Srcs)
	got := make([][]uint64, len(rows))
	for start := 0; start < len(rows); start += 32 {
		part := rows[start:min(start+32, len(rows))]
		for i, row := range part {
			for k, v := range row {
				src[k][i] = v
			}
		}
		mask := uint32(1<<len(part) - 1)
		op.Run(mask, dst, src)
		if register := max(16, f.dst[0].typ.Bits()); op.Signed > 0 && op.Signed < register {
			alu.Extend(mask, dst[0], op.Signed, register)
		}
		for i := range part {
			for k := range dst {
				got[start+i] = append(got[start+i], dst[k][i])
			}
		}
	}
	return got
}
