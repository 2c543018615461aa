package e2e

import (
	"os"
	"strings"
	"testing"
)

// The page docs/how-to/sync-secret.md says what is enough: its commands are run and its manifest is applied,
// with an exported kubeconfig that may do nothing else.
func TestSyncSecretHowTo(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	hub := e.attach()

	page, err := os.ReadFile("../../docs/how-to/sync-secret.md")
	if err != nil {
		t.Fatal(err)
	}

	blocks := strings.Split(string(page), "```")
	if len(blocks) < 5 {
		t.Fatal("the page has no manifest and commands")
	}

	for line := range strings.Lines(strings.TrimSpace(blocks[3])) {
		if _, _, err := hub.Kubectl(t.Context(), strings.Fields(line)[1:]...); err != nil {
			t.Fatal(err)
		}
	}

	e.apply(sourceManifest("one"))
	e.apply(exportManifest("robot", "demo-kubeconfig", "robot", "cluster-automation"))
	e.apply(strings.ReplaceAll(strings.TrimPrefix(blocks[1], "yaml"), "cluster-01", "demo"))

	d := &delivery{fleet: e.fleet, hub: hub, apps: "apps"}
	d.ready("oss", "registry")
	d.apply(sourceManifest("two"))
	d.waitTarget("registry", map[string]string{"username": "robot", "password": "two"})
	d.run("delete", "oss", "registry", "--timeout=60s")
	d.waitTarget("registry", nil)
}
