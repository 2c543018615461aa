package env

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// kubectlTimeout bounds a kubectl call whose context has no nearer deadline. It is more than any --timeout that tests give
// to kubectl, which then says itself what it waited for.
const kubectlTimeout = 5 * time.Minute

// Kubectl runs the real kubectl as the administrator (another user: add --kubeconfig). It
// returns what kubectl printed, also when it fails; the error then contains stderr.
func (h *Hub) Kubectl(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	return h.KubectlInput(ctx, nil, args...)
}

// KubectlInput is Kubectl with a standard input, for "apply -f -".
func (h *Hub) KubectlInput(ctx context.Context, stdin io.Reader, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubectlTimeout)
	defer cancel()

	var out, errOut bytes.Buffer

	cmd := exec.CommandContext(ctx, h.tools.Kubectl, args...)
	cmd.Env = h.KubectlEnv()

	if !h.asDeployed {
		cmd.Env = append(cmd.Env, rareGC)
	}

	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut

	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}

	return out.String(), errOut.String(), err
}

// KubectlEnv returns the environment for kubectl: the administrator's kubeconfig, and a
// discovery cache of the hub's own, so that neither the user's configuration nor another hub
// that had the same port before is ever read.
func (h *Hub) KubectlEnv() []string {
	return append(os.Environ(),
		"KUBECONFIG="+h.KubeconfigPath,
		"KUBECACHEDIR="+filepath.Join(h.Dir, "kubectl-cache"),
		"KUBERC=off",
	)
}

// Shell runs the commands of a script in a directory as the administrator, with kubectl in the path, up to the first one that
// fails, and returns what they print.
func (h *Hub) Shell(ctx context.Context, dir, script string) (output string, err error) {
	programs, err := os.MkdirTemp(h.Dir, "programs-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(programs)

	if err := os.Symlink(h.tools.Kubectl, filepath.Join(programs, "kubectl")); err != nil {
		return "", err
	}

	shell := exec.CommandContext(ctx, "sh", "-e", "-u", "-c", script)
	shell.Dir = dir
	shell.Env = append(h.KubectlEnv(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))

	out, err := shell.CombinedOutput()

	return string(out), err
}

// KubectlPath returns the path of kubectl.
func (h *Hub) KubectlPath() string { return h.tools.Kubectl }
