package deploy

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTerminatingPageNames: the commands of docs/how-to/troubleshooting.md for a served namespace that stays Terminating name what
// the chart renders: the account, its role, its Deployment, and the rights to the lease.
func TestTerminatingPageNames(t *testing.T) {
	const served = "team-a"

	page := filepath.Join(root, "docs/how-to/troubleshooting.md")
	script := strings.NewReplacer("$ns", served, "$system", namespace, `"`, "").Replace(shellBlock(t, page, "kubectl create clusterrolebinding"))
	objects := decode(t, stream(mustRender(t, "controller: {namespaces: ["+served+"]}")))

	binding := find(t, objects, "RoleBinding", "omni-controller")
	account := find(t, objects, "ServiceAccount", "omni-controller-"+served).GetName()
	deployment := find(t, objects, "Deployment", "omni-controller-"+served)

	for _, want := range []string{
		"account=" + namespace + ":" + account + "\n",
		"--clusterrole=" + text(t, binding.Object, "roleRef", "name") + " ",
		"create role " + find(t, objects, "Role", "omni-controller-lease").GetName() + " ",
		"--verb=get,create,update --resource=leases.coordination.k8s.io",
		"patch deployment " + deployment.GetName() + " ",
	} {
		if !strings.Contains(script, want) {
			t.Errorf("there is no %q in\n%s", want, script)
		}
	}

	if got := text(t, deployment.Object, "spec", "template", "spec", "serviceAccountName"); got != account {
		t.Errorf("the Deployment has the account %s", got)
	}

	after := strings.NewReplacer("$ns", served, `"`, "").Replace(shellBlock(t, page, "kubectl delete clusterrolebinding"))
	for _, made := range []string{"clusterrolebinding omni-recovery-" + served, "namespace omni-recovery-" + served} {
		if !strings.Contains(script, "create "+made) || !strings.Contains(after, "delete "+made) {
			t.Errorf("%s is not both made and deleted", made)
		}
	}
}
