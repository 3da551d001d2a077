package host

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/commtest"
)

func TestMain(m *testing.M) { commtest.Main(m, nil) }
