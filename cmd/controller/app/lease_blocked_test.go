package app

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// endsProcess makes this test's own process one that has lost its lease.
const endsProcess = "TEST_ENDS_PROCESS"

// A leader that lost its lease ends also if nobody reads its log: on a node that was frozen, the end of that pipe may hang.
func TestABlockedLogKeepsNoLeader(t *testing.T) {
	if os.Getenv(endsProcess) != "" {
		endProcess("a test")
	}

	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), write.Close() }()

	fill(t, write)

	leader := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	leader.Env = append(os.Environ(), endsProcess+"=true")
	leader.Stderr = write

	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}

	ended := make(chan error, 1)

	go func() { ended <- leader.Wait() }()

	var exit *exec.ExitError
	if err := await.Receive(t, "the end of the process", ended); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
}

// fill writes to a pipe until nothing more fits.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()

	for _, size := range []int{4096, 1} {
		if err := pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}

		for {
			if _, err := pipe.Write(make([]byte, size)); errors.Is(err, os.ErrDeadlineExceeded) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}
