//go:build linux

package render

import (
	"os/exec"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// A process that has too much in memory is killed. When a worker has ended, its ID may be another process's, which is neither killed nor
// taken for a worker with too much.
func TestWatchOfMemory(t *testing.T) {
	const tooMuch = -1 << 40 // what it had when it was ready: any process has more now

	for name, test := range map[string]struct {
		base  int64
		ended bool
		want  bool
	}{
		"more than it may have": {base: tooMuch, want: true},
		"less":                  {base: 1 << 40},
		"it has ended":          {base: tooMuch, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "sleep", "60")
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}

			died := make(chan struct{})

			go func() {
				_ = command.Wait()

				close(died)
			}()

			t.Cleanup(func() {
				_ = command.Process.Kill() // it may be gone already
				<-died
			})

			p := &process{command: command, base: test.base, exited: make(chan struct{})}
			if test.ended {
				close(p.exited)
			}

			end := p.watch(0)
			time.Sleep(5 * watchInterval) // if it has not looked yet on a busy machine, it does so at the end

			if got := end(); got != test.want {
				t.Errorf("too much: %t", got)
			}

			if test.want {
				await.Receive(t, "it is killed", died)

				return
			}

			select {
			case <-died:
				t.Error("it was killed")
			case <-time.After(time.Second):
			}
		})
	}
}
