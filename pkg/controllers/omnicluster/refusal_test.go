package omnicluster

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	f := newFixture(t, newCluster())

	cluster := f.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	if !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, "Reconciling") {
		t.Errorf("a control plane that is not there yet is waited for: %v", shown(cluster))
	}

	f.create(newControlPlane("one", f.machines[0]), newControlPlane("two", f.machines[1]))
	cluster = f.until("Stalled", metav1.ConditionTrue, "MultipleControlPlanes")
	says(t, message(cluster, "Ready"), "one", "two")
	f.quiet()

	if f.view().Exists {
		t.Error("a cluster that does not fit together reached Omni")
	}

	f.delete(newControlPlane("two"))
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// The control plane vanishes while the cluster runs: nothing is destroyed.
func TestControlPlaneVanishes(t *testing.T) {
	f := running(t)
	writes := f.remoteWrites()

	f.delete(newControlPlane("cp"))
	f.until("Assembled", metav1.ConditionFalse, "ControlPlaneMissing")
	f.advance(time.Hour)
	f.quiet()

	if got := f.remoteWrites() - writes; got != 0 {
		t.Errorf("%d writes to Omni", got)
	}

	if f.get().Status.Omni == nil {
		t.Error("what Omni says of the cluster is not shown any more")
	}
}

func TestDocumentsThatConflict(t *testing.T) {
	second := newWorkers("x", machineClass, 1)
	second.Spec.WorkerSetName = "w"
	f := newFixture(t, newCluster(), newWorkers("w", machineClass, 1), second)
	f.create(newControlPlane("cp", f.machines[0]))

	says(t, message(f.until("Stalled", metav1.ConditionTrue, "DuplicateWorkerSet"), "Ready"), `"w"`, `"x"`)
	f.quiet()
}

func TestForeignCluster(t *testing.T) {
	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]))

	if err := omnisim.CreateForeignCluster(t.Context(), f.omni.State(), "demo", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	cluster := f.until("Stalled", metav1.ConditionTrue, "NotOwned")
	says(t, message(cluster, "Ready"), `"demo"`, "not made by this object", "spec.adopt: true")

	if cluster.Status.Plan != nil || cluster.Status.Omni != nil || cluster.Status.OmniClusterID != "" {
		t.Errorf("%+v", cluster.Status)
	}

	f.advance(time.Hour)
	f.quiet()
	f.delete(newCluster())
	f.untilGone()

	if !f.view().Exists || f.remoteWrites() != 0 {
		t.Errorf("the foreign cluster was touched: %v", f.omni.Writes())
	}
}

func TestOwnershipLost(t *testing.T) {
	f := running(t)
	if err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), "demo", v1alpha1.MarkOwnerUID, "uid-other"); err != nil {
		t.Fatal(err)
	}

	writes := f.remoteWrites()

	f.until("Stalled", metav1.ConditionTrue, "OwnershipLost")
	f.quiet()
	f.delete(newCluster())
	f.untilGone()

	if !f.view().Exists || f.remoteWrites() != writes {
		t.Error("another's cluster was touched")
	}
}

func TestRemoteLock(t *testing.T) {
	f := running(t)
	if err := omnisim.AnnotateCluster(t.Context(), f.omni.State(), "demo", "omni.sidero.dev/cluster-locked", ""); err != nil {
		t.Fatal(err)
	}

	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })

	writes := f.remoteWrites()
	cluster := f.until("Stalled", metav1.ConditionTrue, "RemoteLocked")

	if cluster.Status.Plan.Updates != 1 || cluster.Status.Omni == nil {
		t.Errorf("a locked cluster is observed: %+v", cluster.Status)
	}

	f.quiet()
	f.delete(newCluster())
	f.until("DeletionBlocked", metav1.ConditionTrue, "RemoteLocked")
	f.quiet()

	if f.remoteWrites() != writes {
		t.Error("a locked cluster was changed")
	}

	if err := omnisim.RemoveAnnotation(t.Context(), f.omni.State(), "demo", "omni.sidero.dev/cluster-locked"); err != nil {
		t.Fatal(err)
	}

	f.untilGone()
}

// A locked machine cannot leave a set that stays, and nothing but the lock in Omni tells so.
func TestLockedMachineCannotLeave(t *testing.T) {
	listed := newWorkers("w", "", 0)
	listed.Spec.MachineSetMachines = v1alpha1.MachineSetMachines{}
	f := newFixture(t, newCluster(), listed)
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = f.machines[1:] })

	locked := newMachineWithSettings(f.machines[2])
	locked.Spec.Locked = true
	f.create(newControlPlane("cp", f.machines[0]), locked)
	f.until("Ready", metav1.ConditionTrue, "Running")

	f.delete(locked)
	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = f.machines[1:2] })
	f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
	f.advance(settleTime)

	cluster := f.until("Stalled", metav1.ConditionTrue, "Refused")
	says(t, message(cluster, "Ready"), "machine set node is locked; unlock it: omnictl cluster machine unlock "+f.machines[2])

	if refusals := cluster.Status.Refusals; len(refusals) != 1 || !strings.Contains(refusals[0].Message, "omnictl cluster machine unlock") {
		t.Errorf("%+v", refusals)
	}

	_, err := safe.StateUpdateWithConflicts(t.Context(), f.omni.State(), omnires.NewMachineSetNode(f.machines[2], omnires.NewMachineSet("")).Metadata(),
		func(node *omnires.MachineSetNode) error {
			node.Metadata().Annotations().Delete(omnires.MachineLocked)

			return nil
		})
	if err != nil {
		t.Fatal(err)
	}

	f.advance(refusalPause)
	f.eventually("the machine to leave", func() string {
		f.run()

		return map[bool]string{false: message(f.get(), "Ready")}[f.view().Machines["demo-w"] == 1]
	})
}

func TestUnknownVersion(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Kubernetes.Version = "v1.99.0"
	f := newFixture(t, cluster)
	f.create(newControlPlane("cp", f.machines[0]))

	says(t, message(f.until("Stalled", metav1.ConditionTrue, "Refused"), "Ready"), "1.99.0")
	f.quiet()
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Kubernetes.Version = "v1.35.1" })
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// A refusal in the middle leaves part of the template applied, and says so; the
// next run goes on.
func TestLateRefusal(t *testing.T) {
	f := newFixture(t, newCluster(), newWorkers("w", "no-such-class", 1))
	f.create(newControlPlane("cp", f.machines[0]))

	cluster := f.until("Stalled", metav1.ConditionTrue, "Refused")
	says(t, message(cluster, "Ready"), "no-such-class", `Omni took Cluster "demo"`, `OmniWorkers "w"`)

	if !f.view().Exists {
		t.Error("this test wants a late refusal")
	}

	if cluster.Status.Plan.Creates == 0 {
		t.Errorf("plan %+v", cluster.Status.Plan)
	}

	change(f, "w", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.MachineClass.Name = machineClass })
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

// A machine of another cluster is never taken away.
func TestCollision(t *testing.T) {
	f := running(t)
	f.collide()
}

// collide makes a cluster "other" that wants a machine of "demo".
func (f *fixture) collide() {
	f.t.Helper()

	other := newCluster()
	other.Name, other.UID = "other", "uid-other"
	cp := newControlPlane("other-cp", f.machines[0])
	cp.Spec.ClusterRef.Name = "other"
	f.create(other, cp)

	f.eventually("the collision", func() string {
		_, _ = f.loop.Reconcile(f.t.Context(), request(testNamespace, "other"))

		found := &v1alpha1.OmniCluster{}
		if err := f.client.Get(f.t.Context(), request(testNamespace, "other").NamespacedName, found); err != nil {
			return err.Error()
		}

		if !strings.Contains(message(found, "Stalled"), `cluster "demo"`) {
			return strings.Join(shown(found), "\n")
		}

		return ""
	})
}

// A set lists a machine that a set of a class has, which keeps it. Omni never releases it by itself, so somebody has to say
// which of the two gets it.
func TestListedMachineOfAClassOfTheCluster(t *testing.T) {
	for name, mend := range map[string]func(*fixture, string){
		"off the list": func(f *fixture, _ string) {
			change(f, "y", &v1alpha1.OmniWorkers{}, func(o *v1alpha1.OmniWorkers) { o.Spec.Machines = nil })
		},
		"out of the set, which takes another": func(f *fixture, machine string) {
			node := omnires.NewMachineSetNode(machine, omnires.NewMachineSet(""))
			if err := f.omni.State().TeardownAndDestroy(f.t.Context(), node.Metadata()); err != nil && !state.IsNotFoundError(err) {
				f.t.Fatal(err)
			}
		},
		"a smaller set": func(f *fixture, machine string) {
			f.resize(0)
			f.until("Synced", metav1.ConditionFalse, "WaitingToSettle")
			f.advance(settleTime)
			f.eventually("the machine in the other set", func() string {
				f.run()

				node, err := safe.StateGetByID[*omnires.MachineSetNode](f.t.Context(), f.omni.State(), machine)
				if err != nil {
					return err.Error()
				}

				set, _ := node.Metadata().Labels().Get(omnires.LabelMachineSet)

				return strings.TrimPrefix(set, "demo-y")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)

			nodes, err := safe.StateListAll[*omnires.MachineSetNode](t.Context(), f.omni.State(), state.WithLabelQuery(resource.LabelEqual(omnires.LabelMachineSet, "demo-w")))
			if err != nil || nodes.Len() != 2 {
				t.Fatalf("%v, %d machines", err, nodes.Len())
			}

			machine := nodes.Get(0).Metadata().ID()
			f.create(listing("y", machine))
			says(t, message(f.until("Stalled", metav1.ConditionTrue, v1alpha1.ReasonCollision), "Stalled"),
				machine, `by MachineSet "demo-w"`, `machine class "pool"`, `off the list of MachineSet "demo-y"`)
			f.waits()

			mend(f, machine)
			f.until("Ready", metav1.ConditionTrue, "Running")
			f.quiet()
		})
	}
}

func TestDuplicateClusterName(t *testing.T) {
	f := running(t)

	younger := newCluster()
	younger.Name, younger.UID, younger.Spec.ClusterName = "younger", "uid-younger", "demo"
	younger.CreationTimestamp = metav1.Unix(1800000000, 0)
	f.create(younger)

	if _, err := f.loop.Reconcile(t.Context(), request(testNamespace, "younger")); err != nil {
		t.Fatal(err)
	}

	found := &v1alpha1.OmniCluster{}
	if err := f.client.Get(t.Context(), request(testNamespace, "younger").NamespacedName, found); err != nil {
		t.Fatal(err)
	}

	says(t, message(found, "Stalled"), `"demo"`, "older")
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()
}

func TestValues(t *testing.T) {
	const canary = "c4n4ry-0f-4-s3cr3t"

	cluster := newCluster()
	cluster.Spec.Patches = []v1alpha1.Patch{
		{Name: "from-map", ValueFrom: &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "map", Key: "patch"}}},
		{Name: "from-secret", ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "secret", Key: "patch"}}},
	}
	f := newFixture(t, cluster)
	f.create(newControlPlane("cp", f.machines[0]))

	says(t, message(f.until("Validated", metav1.ConditionFalse, "ValueNotFound"), "Ready"), `OmniCluster "demo": patch 0 (from-map): key "patch" of ConfigMap "map": the ConfigMap does not exist`)
	f.create(&corev1.ConfigMap{ObjectMeta: meta("map", ""), Data: map[string]string{"patch": "machine: {network: {hostname: a}}"}})
	says(t, message(f.until("Validated", metav1.ConditionFalse, "ValueNotFound"), "Ready"), `OmniCluster "demo": patch 1 (from-secret): key "patch" of Secret "secret": the Secret does not exist`)

	secret := &corev1.Secret{ObjectMeta: meta("secret", ""), Data: map[string][]byte{"other": nil}}
	f.create(secret)
	f.eventually("the missing key", func() string {
		f.run()

		return strings.TrimPrefix(message(f.get(), "Ready"), `OmniCluster "demo": patch 1 (from-secret): key "patch" of Secret "secret": the Secret has no such key`)
	})

	set := func(text string) {
		secret.Data = map[string][]byte{"patch": []byte(text)}
		if err := f.client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}

	set("machine: {sysctls: {a: " + canary + "}}")
	f.until("Ready", metav1.ConditionTrue, "Running")

	if patches := f.view().Patches; len(patches) != 2 {
		t.Errorf("patches %q", patches)
	}

	f.quiet()
	// A Secret that no object may use.
	protect := func(value string) {
		secret.Labels = map[string]string{v1alpha1.LabelProtected: value}
		set(string(secret.Data["patch"]))
	}

	protect(v1alpha1.ProtectedValue)
	says(t, message(f.until("Validated", metav1.ConditionFalse, "SecretProtected"), "Ready"),
		`OmniCluster "demo": patch 1 (from-secret): key "patch" of Secret "secret": Secret "secret" is protected`)
	protect("false")
	f.until("Ready", metav1.ConditionTrue, "Running")

	// A patch that Talos does not know, in a Secret: the error quotes it.
	set("machine: {" + canary + ": 1}")
	says(t, message(f.until("Validated", metav1.ConditionFalse, "TemplateInvalid"), "Ready"), "[removed]")

	// An error of Omni itself that quotes it.
	set("machine: {sysctls: {b: " + canary + "}}")

	remove := f.omni.Inject(omnisim.Fault{Method: "Update", Code: codes.InvalidArgument, Message: "no sysctl " + canary + " here"})
	f.until("Synced", metav1.ConditionFalse, "Refused")
	remove()

	var all bytes.Buffer

	f.dump(&all)

	if strings.Contains(all.String(), canary) {
		t.Error("the content of a Secret is shown")
	}
}

// unknownTalosKinds are patches with a document of a kind that our Talos library does not know, as inline and from a Secret.
func unknownTalosKinds() (*v1alpha1.OmniCluster, *corev1.Secret) {
	cluster := newCluster()
	cluster.Spec.Patches = []v1alpha1.Patch{
		{Name: "inline", Inline: &v1alpha1.FreeForm{Raw: []byte(`{"apiVersion":"v1alpha1","kind":"NoSuchConfig","rules":[1]}`)}},
		{Name: "secret", ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "patches", Key: "patch"}}},
	}

	return cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "patches"},
		Data:       map[string][]byte{"patch": []byte("machine: {sysctls: {a: b}}\n---\napiVersion: v1alpha1\nkind: OtherConfig\ntoken: canary-a91f # kept\n")},
	}
}

// patchTexts are the contents of all patches in Omni.
func (f *fixture) patchTexts() string {
	f.t.Helper()

	patches, err := safe.StateListAll[*omnires.ConfigPatch](f.t.Context(), f.omni.State())
	if err != nil {
		f.t.Fatal(err)
	}

	var texts strings.Builder

	for patch := range patches.All() {
		content, err := patch.TypedSpec().Value.GetUncompressedData()
		if err != nil {
			f.t.Fatal(err)
		}

		texts.Write(content.Data())
		content.Free()
	}

	return texts.String()
}

// Omni decides about kinds of Talos that our library does not know, and gets the documents as they are.
func TestUnknownTalosKindsReachOmni(t *testing.T) {
	cluster, secret := unknownTalosKinds()
	f := newFixtureWith(t, omnisim.Options{Phase: 20 * time.Millisecond, NewerTalos: true}, cluster, secret)
	f.create(newControlPlane("cp", f.machines[0]))
	f.until("Ready", metav1.ConditionTrue, "Running")
	f.quiet()

	says(t, f.patchTexts(), "apiVersion: v1alpha1\nkind: NoSuchConfig\nrules:\n", string(secret.Data["patch"]))

	// A known document beside it is checked as before.
	secret.Data["patch"] = []byte("machine: {sysctl: {a: canary-a91f}}\n---\napiVersion: v1alpha1\nkind: NoSuchConfig\n")
	if err := f.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	refused := f.until("Validated", metav1.ConditionFalse, "TemplateInvalid")
	says(t, message(refused, "Ready"), "unknown keys")

	if text := message(refused, "Ready"); strings.Contains(text, "canary") {
		t.Errorf("the content of a Secret is shown: %s", text)
	}
}

// An Omni that does not know the kind either refuses it: the condition says that these are Omni's words.
func TestUnknownTalosKindIsRefusedByOmni(t *testing.T) {
	cluster, secret := unknownTalosKinds()
	f := newFixture(t, cluster, secret)
	f.create(newControlPlane("cp", f.machines[0]))

	refused := f.until("Synced", metav1.ConditionFalse, "Refused")
	says(t, message(refused, "Synced"), "200-cluster-demo-inline", "Omni refuses this", "NoSuchConfig", "not registered")

	if !apimeta.IsStatusConditionTrue(refused.Status.Conditions, "Validated") || strings.Contains(message(refused, "Synced"), "canary") {
		t.Errorf("%v", shown(refused))
	}

	f.quiet()
}

// An answer that says nothing about the content is tried again with pauses.
func TestTransientFailure(t *testing.T) {
	f := running(t)
	f.edit(func(o *v1alpha1.OmniCluster) { o.Spec.Labels = map[string]string{"a": "b"} })

	remove := f.omni.Inject(omnisim.Fault{Method: "Update", Code: codes.Internal})
	_, err := f.loop.Reconcile(context.WithoutCancel(t.Context()), request(testNamespace, testCluster))

	if err == nil {
		t.Error("no error, so no pause")
	}

	if got := apimeta.FindStatusCondition(f.get().Status.Conditions, "Synced"); got.Reason != "Error" {
		t.Errorf("%+v", got)
	}

	remove()
	f.until("Ready", metav1.ConditionTrue, "Running")
}

// The role of the service account is too low to write.
func TestReaderOnly(t *testing.T) {
	f := newFixture(t, newCluster())
	f.create(newControlPlane("cp", f.machines[0]))

	if err := f.omni.SetRole("operator", omnisim.RoleReader); err != nil {
		t.Fatal(err)
	}

	says(t, message(f.until("Stalled", metav1.ConditionTrue, "PermissionDenied"), "Ready"), "role")
	f.quiet()
}
