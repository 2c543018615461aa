package deploy

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// leavesSharedAccount: an upgrade from the chart in which all controllers ran as omni-controller takes the rights away
// from that account, and the account itself.
func (h *helmClient) leavesSharedAccount(t *testing.T, hub *env.Hub) {
	t.Helper()

	const values = `controller: {namespaces: [team-a]}`

	before, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}

	replaced := 0
	account := regexp.MustCompile(`(?s)(define "omni.controllerAccount" -}}).*?({{- end }})`)

	for _, file := range before.Templates {
		replaced += len(account.FindAll(file.Data, -1))
		file.Data = account.ReplaceAll(file.Data, []byte("${1}omni-controller${2}"))
	}

	if replaced != 1 {
		t.Fatalf("the chart names accounts of controllers in %d places", replaced)
	}

	if err := h.upgradeTo(t, before, values); err != nil {
		t.Fatal(err)
	}

	bound := func() []string {
		return strings.Fields(kubectl(t, hub, "", "get", "rolebindings,clusterrolebindings", "-A", "-l", "app.kubernetes.io/name=omni-controller",
			"-o", "jsonpath={range .items[*]}{.metadata.name}={.subjects[*].name} {end}"))
	}
	want := func(account string) []string {
		return []string{
			"omni-controller-auth-delegator=" + account, "omni-controller-crd-check=" + account,
			"omni-controller-lease=" + account, "omni-controller=" + account,
		}
	}

	if got := slices.Sorted(slices.Values(bound())); !slices.Equal(got, want("omni-controller")) {
		t.Fatalf("bindings before: %q", got)
	}

	h.upgrade(t, values)

	if got := slices.Sorted(slices.Values(bound())); !slices.Equal(got, want("omni-controller-team-a")) {
		t.Errorf("bindings after: %q", got)
	}

	if got := kubectl(t, hub, "", "get", "serviceaccounts", "-n", namespace, "--ignore-not-found", "omni-controller", "-o", "name"); got != "" {
		t.Errorf("the shared account is there: %q", got)
	}
}
