package omnicluster

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// message is the message of a condition.
func message(cluster *v1alpha1.OmniCluster, condition string) string {
	if c := apimeta.FindStatusCondition(cluster.Status.Conditions, condition); c != nil {
		return c.Message
	}

	return ""
}

func says(t *testing.T, text string, parts ...string) {
	t.Helper()

	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func TestControlPlanes(t *testing.T) {
	b := newBench(t, newCluster())

	cluster := b.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	if !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, "Reconciling") {
		t.Errorf("a control plane that is not there yet is waited for: %v", shown(cluster))
	}

	b.create(newControlPlane("one", b.machines[0]), newControlPlane("two", b.machines[1]))
	cluster = b.until("Stalled", metav1.ConditionTrue, "MultipleControlPlanes")
	says(t, message(cluster, "Ready"), "one", "two")
	b.quiet()

	if b.view().Exists {
		t.Error("a cluster that does not fit together reached Omni")
	}

	b.delete(newControlPlane("two"))
	b.until("Ready", metav1.ConditionTrue, "Running")
}

// The control plane vanishes while the cluster runs: nothing is destroyed.
func TestControlPlaneVanishes(t *testing.T) {
	b := running(t)
	writes := b.remoteWrites()

	b.delete(newControlPlane("cp"))
	b.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	b.advance(time.Hour)
	b.quiet()

	if got := b.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}

	if b.get().Status.Omni == nil {
		t.Error("what Omni says of the cluster is not shown any more")
	}
}

func TestDocumentsThatConflict(t *testing.T) {
	second := newWorkers("x", machineClass, 1)
	second.Spec.WorkerSetName = "w"
	b := newBench(t, newCluster(), newWorkers("w", machineClass, 1), second)
	b.create(newControlPlane("cp", b.machines[0]))

	says(t, message(b.until("Stalled", metav1.ConditionTrue, "DuplicateWorkerSet"), "Ready"), `"w"`, `"x"`)
	b.quiet()
}

func TestForeignCluster(t *testing.T) {
	b := newBench(t, newCluster())
	b.create(newControlPlane("cp", b.machines[0]))

	if err := omnisim.CreateForeignCluster(t.Context(), b.omni.State(), "demo", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	cluster := b.until("Stalled", metav1.ConditionTrue, "NotOwned")
	says(t, message(cluster, "Ready"), `"demo"`, "not made by this object", "spec.adopt: true")

	if cluster.Status.Plan != nil || cluster.Status.Omni != nil || cluster.Status.OmniClusterID != "" {
		t.Errorf("%+v", cluster.Status)
	}

	b.advance(time.Hour)
	b.quiet()
	b.delete(newCluster())
	b.untilGone()

	if !b.view().Exists || b.remoteWrites() != 0 {
		t.Errorf("the foreign cluster was touched: %v", b.omni.Writes())
	}
}

func TestOwnershipLost(t *testing.T) {
	b := running(t)
	if err := omnisim.AnnotateCluster(t.Context(), b.omni.State(), "demo", v1alpha1.MarkOwnerUID, "uid-other"); err != nil {
		t.Fatal(err)
	}

	writes := b.remoteWrites()

	b.until("Stalled", metav1.ConditionTrue, "OwnershipLost")
	b.quiet()
	b.delete(newCluster())
	b.untilGone()

	if !b.view().Exists || b.remoteWrites() != writes {
		t.Error("another's cluster was touched")
	}
}

func TestRemoteLock(t *testing.T) {
	b := running(t)
	if err := omnisim.AnnotateCluster(t.Context(), b.omni.State(), "demo", "omni.sidero.dev/cluster-locked", ""); err != nil {
		t.Fatal(err)
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })

	writes := b.remoteWrites()
	cluster := b.until("Stalled", metav1.ConditionTrue, "RemoteLocked")

	if cluster.Status.Plan.Updates != 1 || cluster.Status.Omni == nil {
		t.Errorf("a locked cluster is observed: %+v", cluster.Status)
	}

	b.quiet()
	b.delete(newCluster())
	b.until("DeletionBlocked", metav1.ConditionTrue, "RemoteLocked")
	b.quiet()

	if b.remoteWrites() != writes {
		t.Error("a locked cluster was changed")
	}

	if err := omnisim.RemoveAnnotation(t.Context(), b.omni.State(), "demo", "omni.sidero.dev/cluster-locked"); err != nil {
		t.Fatal(err)
	}

	b.untilGone()
}

func TestUnknownVersion(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Kubernetes.Version = "v1.99.0"
	b := newBench(t, cluster)
	b.create(newControlPlane("cp", b.machines[0]))

	says(t, message(b.until("Stalled", metav1.ConditionTrue, "Refused"), "Ready"), "1.99.0")
	b.quiet()
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Kubernetes.Version = "v1.35.1" })
	b.until("Ready", metav1.ConditionTrue, "Running")
}

// A refusal in the middle leaves part of the template applied, and says so; the
// next run goes on.
func TestLateRefusal(t *testing.T) {
	b := newBench(t, newCluster(), newWorkers("w", "no-such-class", 1))
	b.create(newControlPlane("cp", b.machines[0]))

	cluster := b.until("Stalled", metav1.ConditionTrue, "Refused")
	says(t, message(cluster, "Ready"), "no-such-class", `Omni took Cluster "demo"`, `OmniWorkers "w"`)

	if !b.view().Exists {
		t.Error("this test wants a late refusal")
	}

	if cluster.Status.Plan.Creates == 0 {
		t.Errorf("plan %+v", cluster.Status.Plan)
	}

	change(b, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Name = machineClass })
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()
}

// A machine of another cluster is never taken away.
func TestCollision(t *testing.T) {
	b := running(t)

	other := newCluster()
	other.Name, other.UID = "other", "uid-other"
	cp := newControlPlane("other-cp", b.machines[0])
	cp.Spec.ClusterRef.Name = "other"
	b.create(other, cp)

	b.eventually("the collision", func() string {
		_, _ = b.loop.Reconcile(t.Context(), request(benchNamespace, "other"))

		found := &v1alpha1.OmniCluster{}
		if err := b.client.Get(t.Context(), request(benchNamespace, "other").NamespacedName, found); err != nil {
			return err.Error()
		}

		if !strings.Contains(message(found, "Stalled"), `cluster "demo"`) {
			return strings.Join(shown(found), "\n")
		}

		return ""
	})
}

func TestDuplicateClusterName(t *testing.T) {
	b := running(t)

	younger := newCluster()
	younger.Name, younger.UID, younger.Spec.ClusterName = "younger", "uid-younger", "demo"
	younger.CreationTimestamp = metav1.Unix(1800000000, 0)
	b.create(younger)

	if _, err := b.loop.Reconcile(t.Context(), request(benchNamespace, "younger")); err != nil {
		t.Fatal(err)
	}

	found := &v1alpha1.OmniCluster{}
	if err := b.client.Get(t.Context(), request(benchNamespace, "younger").NamespacedName, found); err != nil {
		t.Fatal(err)
	}

	says(t, message(found, "Stalled"), `"demo"`, "older")
	b.until("Ready", metav1.ConditionTrue, "Running")
	b.quiet()
}

func TestValues(t *testing.T) {
	const canary = "c4n4ry-0f-4-s3cr3t"

	cluster := newCluster()
	cluster.Spec.Patches = []v1alpha1.Patch{
		{Name: "from-map", ValueFrom: &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "map", Key: "patch"}}},
		{Name: "from-secret", ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "secret", Key: "patch"}}},
	}
	b := newBench(t, cluster)
	b.create(newControlPlane("cp", b.machines[0]))

	says(t, message(b.until("Validated", metav1.ConditionFalse, "ValueNotFound"), "Ready"), `OmniCluster "demo": patch 0 (from-map): key "patch" of ConfigMap "map": the ConfigMap does not exist`)
	b.create(&corev1.ConfigMap{ObjectMeta: meta("map", ""), Data: map[string]string{"patch": "machine: {network: {hostname: a}}"}})
	says(t, message(b.until("Validated", metav1.ConditionFalse, "ValueNotFound"), "Ready"), `OmniCluster "demo": patch 1 (from-secret): key "patch" of Secret "secret": the Secret does not exist`)

	secret := &corev1.Secret{ObjectMeta: meta("secret", ""), Data: map[string][]byte{"other": nil}}
	b.create(secret)
	b.eventually("the missing key", func() string {
		b.run()

		return strings.TrimPrefix(message(b.get(), "Ready"), `OmniCluster "demo": patch 1 (from-secret): key "patch" of Secret "secret": the Secret has no such key`)
	})

	set := func(text string) {
		secret.Data = map[string][]byte{"patch": []byte(text)}
		if err := b.client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}

	set("machine: {sysctls: {a: " + canary + "}}")
	b.until("Ready", metav1.ConditionTrue, "Running")

	if patches := b.view().Patches; len(patches) != 2 {
		t.Errorf("patches %q", patches)
	}

	b.quiet()
	// A Secret that no object may use.
	protect := func(value string) {
		secret.Labels = map[string]string{v1alpha1.LabelProtected: value}
		set(string(secret.Data["patch"]))
	}

	protect(v1alpha1.ProtectedValue)
	says(t, message(b.until("Validated", metav1.ConditionFalse, "SecretProtected"), "Ready"),
		`OmniCluster "demo": patch 1 (from-secret): key "patch" of Secret "secret": Secret "secret" is protected`)
	protect("false")
	b.until("Ready", metav1.ConditionTrue, "Running")

	// A patch that Talos does not know, in a Secret: the error quotes it.
	set("machine: {" + canary + ": 1}")
	says(t, message(b.until("Validated", metav1.ConditionFalse, "TemplateInvalid"), "Ready"), "[removed]")

	// An error of Omni itself that quotes it.
	set("machine: {sysctls: {b: " + canary + "}}")

	remove := b.omni.Inject(omnisim.Fault{Method: "Update", Code: codes.InvalidArgument, Message: "no sysctl " + canary + " here"})
	b.until("Synced", metav1.ConditionFalse, "Refused")
	remove()

	var all bytes.Buffer

	b.dump(&all)

	if strings.Contains(all.String(), canary) {
		t.Error("the content of a Secret is shown")
	}
}

func TestConnectionThatIsNotThere(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.ConnectionRef.Name = "none"
	b := newBench(t, cluster)

	says(t, message(b.until("ConnectionReady", metav1.ConditionFalse, "ConnectionNotFound"), "Ready"), `"none"`)
	b.quiet()
	b.delete(newCluster())
	b.untilGone()
}

// The session goes away: a status says so, but not in the first moments of the
// process.
func TestSessionThatIsNotOpen(t *testing.T) {
	b := running(t)
	b.pool.Forget("uid-connection")
	b.restart()

	writes := b.writes
	keeps := func() {
		t.Helper()

		if result := b.run(); result.RequeueAfter <= 0 || result.RequeueAfter > sessionPause || b.writes != writes {
			t.Errorf("%v, %d writes", result, b.writes-writes)
		}
	}

	keeps()

	// The connection is still shown as Ready: its own controller says when it is not.
	showReady(b, metav1.ConditionTrue)
	b.advance(readyGrace - time.Second)
	keeps()

	showReady(b, metav1.ConditionFalse)
	b.until("ConnectionReady", metav1.ConditionFalse, "ConnectionNotReady")
	b.quiet()
	b.connect()
	b.until("Ready", metav1.ConditionTrue, "Running")
}

// showReady writes the condition Ready of the connection, as its controller does.
func showReady(b *bench, status metav1.ConditionStatus) {
	b.t.Helper()

	connection := &v1alpha1.OmniConnection{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: benchNamespace, Name: "omni"}, connection); err != nil {
		b.t.Fatal(err)
	}

	apimeta.SetStatusCondition(&connection.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: "Any", ObservedGeneration: connection.Generation,
	})

	if err := b.client.Update(b.t.Context(), connection); err != nil {
		b.t.Fatal(err)
	}
}

func TestOmniGoesAway(t *testing.T) {
	b := running(t)
	b.omni.GoDown()
	b.until("ConnectionReady", metav1.ConditionFalse, "MirrorNotSynced")

	if b.get().Status.Omni == nil {
		t.Error("what Omni said last is not shown any more")
	}

	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })

	if err := b.omni.ComeBack(); err != nil {
		t.Fatal(err)
	}

	b.until("Ready", metav1.ConditionTrue, "Running")

	if b.view().Labels["a"] != "b" {
		t.Error("the change was lost")
	}
}

// An answer that says nothing about the content is tried again with pauses.
func TestTransientFailure(t *testing.T) {
	b := running(t)
	b.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })

	remove := b.omni.Inject(omnisim.Fault{Method: "Update", Code: codes.Internal})
	_, err := b.loop.Reconcile(context.WithoutCancel(t.Context()), request(benchNamespace, benchCluster))

	if err == nil {
		t.Error("no error, so no pause")
	}

	if got := apimeta.FindStatusCondition(b.get().Status.Conditions, "Synced"); got.Reason != "Error" {
		t.Errorf("%+v", got)
	}

	remove()
	b.until("Ready", metav1.ConditionTrue, "Running")
}

// The role of the service account is too low to write.
func TestReaderOnly(t *testing.T) {
	b := newBench(t, newCluster())
	b.create(newControlPlane("cp", b.machines[0]))

	if err := b.omni.SetRole("operator", omnisim.RoleReader); err != nil {
		t.Fatal(err)
	}

	says(t, message(b.until("Stalled", metav1.ConditionTrue, "PermissionDenied"), "Ready"), "role")
	b.quiet()
}
