package e2eflux

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// gitServer serves Git repositories on loopback, by the protocol that Flux's source-controller speaks, with git's own
// server.
type gitServer struct {
	t    *testing.T
	root string
	url  string
}

func newGitServer(t *testing.T) *gitServer {
	t.Helper()

	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}

	g := &gitServer{t: t, root: t.TempDir()}
	server := httptest.NewServer(&cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + g.root, "GIT_HTTP_EXPORT_ALL=1"},
	})
	t.Cleanup(server.Close)
	g.url = server.URL

	return g
}

// commit makes a repository with these files, on branch main.
func (g *gitServer) commit(name string, files map[string]string) {
	g.t.Helper()

	work := filepath.Join(g.t.TempDir(), name)

	for path, content := range files {
		file := filepath.Join(work, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			g.t.Fatal(err)
		}

		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}

	g.git(work, "init", "--quiet", "--initial-branch=main")
	g.git(work, "add", ".")
	g.git(work, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message=all")
	g.git(g.root, "clone", "--quiet", "--bare", work, name)
}

func (g *gitServer) git(dir string, args ...string) {
	g.t.Helper()

	command := exec.CommandContext(g.t.Context(), "git", args...)
	command.Dir = dir
	// Nothing of who runs the tests: neither their settings nor their hooks.
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")

	if out, err := command.CombinedOutput(); err != nil {
		g.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}
