package omnihelmrelease

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
)

// loseStatus is a restore of the API's storage from before the first status, and a new process after it.
func (f *fixture) loseStatus() {
	f.t.Helper()

	release := f.get()
	release.Status = v1alpha1.OmniHelmReleaseStatus{}

	if err := f.client.Status().Update(f.t.Context(), release); err != nil {
		f.t.Fatal(err)
	}

	f.restart()
	f.said()
}

// The deletion looks where the spec wants the release, and takes what bears the mark. It waits for no cluster, because most
// often nothing is there.
func TestADeletionDoesNotBelieveALostStatus(t *testing.T) {
	letGo := clusteraccess.Cleanup{Action: clusteraccess.ActionLetGo, Why: "it does not answer"}
	nothing := clusteraccess.Cleanup{Action: clusteraccess.ActionLetGo, Why: "no kubeconfig", NothingLeft: true}
	maybe := `LeftBehind Helm release default/app may be left in the workload cluster of OmniCluster "demo": ` +
		`the status records no release, and the cluster could not be looked at: `

	for name, test := range map[string]struct {
		change      func(*fixture)
		uninstalled bool
		event       string // part of one about what is left; empty: none
	}{
		"released": {func(*fixture) {}, true, ""},
		"released, then orphan": {func(f *fixture) {
			f.edit(func(r *v1alpha1.OmniHelmRelease) { r.Spec.DeletionPolicy = v1alpha1.ReleaseOrphan })
		}, false, ""},
		"never released":     {func(f *fixture) { f.cluster.revisions = nil }, false, ""},
		"without a mark":     {func(f *fixture) { f.cluster.revisions[0].Owner = "" }, false, ""},
		"another object's":   {func(f *fixture) { f.cluster.revisions[0].Owner = "another" }, false, ""},
		"another hub's":      {func(f *fixture) { f.cluster.revisions[0].Hub = "hub-2" }, false, "LeftBehind Helm release default/app stays"},
		"it cannot be read":  {func(f *fixture) { f.cluster.lost = errors.New("bad gateway") }, false, maybe},
		"no cluster":         {func(f *fixture) { f.access.cleanup = letGo }, false, maybe + "it does not answer"},
		"never a kubeconfig": {func(f *fixture) { f.access.cleanup = nothing }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) { r.Spec.ClusterRef.Name = "demo" })
			f.settle()
			f.loseStatus()
			test.change(f)

			want, revisions := []helm.Action{helm.ActionInstall}, len(f.cluster.revisions)
			if test.uninstalled {
				want, revisions = append(want, helm.ActionUninstall), 0
			}

			f.remove()
			f.run()

			if test.uninstalled {
				f.run()
			}

			f.wantActions(want...)

			if !f.gone() || len(f.cluster.revisions) != revisions {
				t.Errorf("gone: %t, %d revisions", f.gone(), len(f.cluster.revisions))
			}

			said := strings.Split(f.said(), "\n")
			said = slices.DeleteFunc(said, func(line string) bool { return !strings.Contains(line, "LeftBehind") })

			if (len(said) == 0) != (test.event == "") || !strings.Contains(strings.Join(said, "\n"), test.event) {
				t.Errorf("events: %q", said)
			}
		})
	}
}

// The same through the real access: what may heal is not waited for.
func TestADeletionWithoutAStatusWaitsForNoCluster(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig []byte
		says       string
	}{
		"never a kubeconfig": {nil, ""},
		"no kubeconfig":      {[]byte("none"), "LeftBehind"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(r *v1alpha1.OmniHelmRelease) {
				r.Spec.ClusterRef.Name, r.Spec.KubeconfigSecretRef.Name = "demo", "access"
			})
			f.settle()
			f.loseStatus()
			f.admit(test.kubeconfig, true)
			f.remove()
			f.look()

			if said := f.said(); !f.gone() || strings.Contains(said, "LeftBehind") != (test.says != "") {
				t.Errorf("gone: %t, events: %s", f.gone(), said)
			}
		})
	}
}
