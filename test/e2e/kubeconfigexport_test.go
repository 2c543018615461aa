package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// exporting is a fleet with one cluster named demo.
type exporting struct {
	*fleet
}

func newExporting(t *testing.T) *exporting {
	t.Helper()

	f := newFleet(t)
	f.cluster("demo")

	return &exporting{f}
}

// exportManifest has extra lines of spec, indented by two.
func exportManifest(name, target, user, group string, extra ...string) string {
	lines := strings.Join(extra, "\n")
	if !strings.Contains(lines, "  ttl:") {
		lines += "\n  ttl: 24h\n  renewBefore: 4h"
	}

	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniKubeconfigExport
metadata:
  name: %s
spec:
  clusterRef: {name: demo}
  targetSecretRef: {name: %s}
  serviceAccount: {user: %s, groups: [%s]}
  deletionPolicy: Delete
%s`, name, target, user, group, lines)
}

// attach puts a real Kubernetes behind the cluster.
func (e *exporting) attach() *env.Hub {
	e.t.Helper()

	hub := workloads.Borrow(e.t)
	cert, key := hub.FrontProxyClient()

	if err := e.omni.AttachWorkload("demo", omnisim.Workload{URL: hub.URL(), CA: hub.CA(), ProxyCert: cert, ProxyKey: key}); err != nil {
		e.t.Fatal(err)
	}

	return hub
}

func (e *exporting) ready(name string) {
	e.t.Helper()
	e.waitCondition("oke", name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

func (e *exporting) status(name string) v1alpha1.OmniKubeconfigExportStatus {
	e.t.Helper()

	return get[v1alpha1.OmniKubeconfigExport](e.space, "oke", name).Status
}

// asked is how often Omni was asked for a kubeconfig.
func (e *exporting) asked() int { return e.omni.Requests()[omnisim.Request{Method: "Kubeconfig"}] }

// kubectl runs kubectl in the workload cluster, with the kubeconfig of a Secret and nothing else.
func (e *exporting) kubectl(secret string, args ...string) error {
	e.t.Helper()

	path := filepath.Join(e.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, get[corev1.Secret](e.space, "secret", secret).Data["value"], 0o600); err != nil {
		e.t.Fatal(err)
	}

	_, _, err := stack.Kubectl(e.t.Context(), append([]string{"--kubeconfig", path}, args...)...)

	return err
}

// An exported kubeconfig reaches a real workload cluster through the proxy of Omni, where RBAC sees
// its user and groups; it is repaired when somebody changes it, and goes with its object.
func TestKubeconfigExportReachesTheWorkloadCluster(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	hub := e.attach()

	e.apply(exportManifest("robot", "access", "robot", "deployers"))
	e.ready("robot")

	if err := e.kubectl("access", "get", "namespaces"); err == nil || !strings.Contains(err.Error(), `User "robot" cannot list`) {
		t.Fatalf("without a binding: %v", err)
	}

	_, err := hub.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "deployers"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	e.wait("the binding to count", func() error { return e.kubectl("access", "create", "namespace", "made-with-it") })

	if _, err := hub.Client().CoreV1().Namespaces().Get(t.Context(), "made-with-it", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	e.run("patch", "secret", "access", "--type=merge", "-p", `{"data":{"kubeconfig":"ZXZpbA==","value":"ZXZpbA=="}}`)
	e.wait("the repair", func() error { return e.kubectl("access", "get", "namespaces") })

	if e.asked() != 2 {
		t.Errorf("Omni was asked %d times, want 2: once, and for the repair", e.asked())
	}

	e.tokenIsNeverShown("access")
	e.run("delete", "oke", "robot", "--timeout=60s")
	e.waitGone("secret", "access")
}

// tokenIsNeverShown looks for the token of a Secret everywhere else.
func (e *exporting) tokenIsNeverShown(secret string) {
	e.t.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(get[corev1.Secret](e.space, "secret", secret).Data["value"])
	if err != nil {
		e.t.Fatal(err)
	}

	metrics, err := stack.Controller.Metrics(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}

	if !strings.Contains(metrics, fmt.Sprintf(`omni_kubeconfig_expiration_timestamp_seconds{name="robot",namespace=%q}`, e.name)) {
		e.t.Error("there is no metric of the expiration")
	}

	places := map[string]string{
		"objects": e.run("get", "omni", "-o", "yaml"), "tables": e.run("get", "omni", "-o", "wide"),
		"events": e.run("get", "events", "-o", "yaml"), "metrics": metrics,
	}

	for _, path := range []string{stack.Controller.LogPath(), stack.OmniAPIServer.LogPath()} {
		data, err := os.ReadFile(path)
		if err != nil {
			e.t.Fatal(err)
		}

		places[path] = string(data)
	}

	parts := strings.Split(config.BearerToken, ".")

	for place, text := range places {
		for _, part := range parts[1:] {
			if strings.Contains(text, part[:24]) {
				e.t.Errorf("%s shows the token", place)
			}
		}
	}
}

// With nothing changed nothing is written and Omni is not asked, also after a restart.
func TestKubeconfigExportSecondRunWritesNothing(t *testing.T) {
	slow(t)
	e := newExporting(t)
	e.apply(exportManifest("robot", "access", "robot", "deployers"),
		exportManifest("argo", "argo", "argo", "deployers", "  format: ArgoCD"))
	e.ready("robot")
	e.ready("argo")

	versions := func() string {
		return e.run("get", "oke,secret", "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name}@{.metadata.resourceVersion} {end}")
	}

	e.settled(versions)

	before, asked := versions(), e.asked()

	if err := stack.Controller.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	e.run("annotate", "oke", "robot", "omni.texashpc.com/reconcile-requested-at=now")
	e.waitShows("the request to be handled", "oke", "robot", "{.status.lastHandledReconcileAt}", "now")
	e.run("annotate", "oke", "argo", "note=looked-at")
	e.settled(versions)

	// The two annotations are ours; the Secrets stayed as they were.
	if after := secretVersions(versions()); after != secretVersions(before) || e.asked() != asked {
		t.Errorf("Omni was asked %d times more\nbefore: %s\nafter:  %s", e.asked()-asked, before, after)
	}

	secret := get[corev1.Secret](e.space, "secret", "argo")

	var config map[string]any
	if err := json.Unmarshal(secret.Data["config"], &config); err != nil || secret.Labels["argocd.argoproj.io/secret-type"] != "cluster" ||
		string(secret.Data["server"]) != e.omni.KubernetesProxyURL()+"?cluster=demo" {
		t.Errorf("Argo CD Secret: %v %s %v", secret.Labels, secret.Data["server"], err)
	}
}

func secretVersions(all string) string {
	var secrets []string

	for word := range strings.FieldsSeq(all) {
		if strings.HasPrefix(word, "Secret/") {
			secrets = append(secrets, word)
		}
	}

	return strings.Join(secrets, " ")
}

// A Secret of somebody else is never written, and of two exports with one target one waits.
func TestKubeconfigExportConflicts(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	e.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: theirs}\nstringData: {a: b}")
	e.apply(exportManifest("greedy", "theirs", "robot", "deployers"))
	e.waitCondition("oke", "greedy", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonConflict)

	if secret := get[corev1.Secret](e.space, "secret", "theirs"); len(secret.Data) != 1 || len(secret.Labels) != 0 || e.asked() != 0 {
		t.Errorf("the foreign Secret has %d keys and labels %v; Omni was asked %d times", len(secret.Data), secret.Labels, e.asked())
	}

	e.apply(exportManifest("first", "shared", "robot", "deployers"))
	e.ready("first")
	e.apply(exportManifest("second", "shared", "robot", "deployers"))

	message := e.waitCondition("oke", "second", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	if !strings.Contains(message, `OmniKubeconfigExport "first"`) {
		t.Errorf("message: %s", message)
	}

	// The first moves on: write new, then delete old, and the second takes over at once.
	e.run("patch", "oke", "first", "--type=merge", "-p", `{"spec":{"targetSecretRef":{"name":"moved"}}}`)
	e.ready("second")
	e.ready("first")

	if got := e.status("first").TargetSecretRef; got == nil || got.Name != "moved" {
		t.Errorf("target %+v", got)
	}

	// The second leaves its Secret behind, which tells nobody: a third that may take it does so at once.
	e.run("patch", "oke", "second", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Orphan"}}`)
	e.apply(exportManifest("third", "shared", "robot", "deployers"))
	e.run("patch", "oke", "third", "--type=merge", "-p", `{"spec":{"adopt":true}}`)
	e.waitCondition("oke", "third", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	e.run("delete", "oke", "second", "--timeout=60s")
	e.ready("third")

	e.run("delete", "oke", "--all", "--timeout=60s")

	if out := e.run("get", "secret", "theirs", "-o", "name"); !strings.Contains(out, "theirs") {
		t.Errorf("the foreign Secret: %s", out)
	}

	e.waitGone("secret", "shared")
	e.waitGone("secret", "moved")
}

// A renewal is due while Omni is down: the old Secret and status stay, the object stays Ready and
// says why; when Omni is back it is renewed.
func TestKubeconfigExportRotation(t *testing.T) {
	slow(t)
	t.Parallel()

	e := newExporting(t)
	// The shortest that there is: a kubeconfig lives a minute at least.
	e.apply(exportManifest("robot", "access", "robot", "deployers", "  ttl: 10m", "  renewBefore: 9m59s"))
	e.ready("robot")

	first, secret := e.status("robot"), get[corev1.Secret](e.space, "secret", "access")

	e.omni.GoDown()
	e.waitCondition("oke", "robot", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRenewalFailing)

	if now := e.status("robot"); now.KubeconfigHash != first.KubeconfigHash || !now.ExpirationTime.Equal(first.ExpirationTime) {
		t.Errorf("the status changed: %+v", now)
	}

	if now := get[corev1.Secret](e.space, "secret", "access"); now.ResourceVersion != secret.ResourceVersion {
		t.Error("the Secret changed")
	}

	if err := e.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	e.wait("the renewal", func() error {
		if now := e.status("robot"); now.KubeconfigHash == first.KubeconfigHash || !first.LastRotationTime.Before(now.LastRotationTime) {
			return errors.New("not renewed")
		}

		return nil
	})

	if err := e.kubectl("access", "get", "--raw", "/version"); err == nil || strings.Contains(err.Error(), "nauthorized") {
		t.Errorf("the new token: %v, want no healthy API behind the proxy", err)
	}
}

// The controller is killed at any moment of a renewal: the Secret is never lost, and at most one
// more kubeconfig is issued.
func TestControllerIsKilledWhileItRenews(t *testing.T) {
	slow(t)
	e := newExporting(t)
	e.apply(exportManifest("robot", "access", "robot", "deployers"))
	e.ready("robot")

	for i, delay := range []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond} {
		before, asked := e.status("robot").KubeconfigHash, e.asked()
		user := fmt.Sprintf("robot-%d", i)
		e.run("patch", "oke", "robot", "--type=merge", "-p", `{"spec":{"serviceAccount":{"user":"`+user+`"}}}`)

		for deadline := time.Now().Add(20 * time.Second); e.asked() == asked && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}

		time.Sleep(delay)
		stack.Controller.Kill()

		if got := get[corev1.Secret](e.space, "secret", "access"); len(got.Data["kubeconfig"]) == 0 {
			t.Error("the Secret is empty")
		}

		if err := stack.Controller.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}

		e.ready("robot")

		if now := e.status("robot"); now.KubeconfigHash == before || e.asked()-asked > 2 {
			t.Errorf("delay %s: asked %d times; status %+v", delay, e.asked()-asked, now)
		}

		t.Logf("killed %s after Omni was asked: %d kubeconfigs", delay, e.asked()-asked)
	}
}
