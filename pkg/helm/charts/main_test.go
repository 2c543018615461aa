package charts_test

import (
	"fmt"
	"os"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render/worker"
	"omni.texashpc.com/omni-cluster-operator/test/rendertest"
)

// program is what the renderers of all tests run, and renderers are those of tests that need none of their own.
var (
	program   string
	renderers *render.Pool
)

// TestMain makes the test program a worker when a pool starts it as one.
func TestMain(m *testing.M) {
	if worker.Asked(os.Args) {
		os.Exit(worker.Run(os.Args))
	}

	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}

	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	directory, err := os.MkdirTemp("", "charts")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(directory)

	if program, err = rendertest.Program(directory); err != nil {
		return 1, err
	}

	renderers = render.New(render.Options{Program: program})
	defer renderers.Close()

	return m.Run(), nil
}
