package omnikubeconfigexport

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestFirstExport(t *testing.T) {
	b := newBench(t)
	b.ready()

	secret, status := b.secret("target"), b.get().Status
	if secret == nil || len(secret.Data) != 2 || string(secret.Data["kubeconfig"]) != string(secret.Data["value"]) {
		t.Fatal("the Secret does not hold the kubeconfig under kubeconfig and value")
	}

	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil || config.Host != b.omni.KubernetesProxyURL() || string(config.CAData) != string(b.omni.CAPEM()) {
		t.Errorf("kubeconfig: host %v, error %v", config.Host, err)
	}

	token, err := readToken(config.BearerToken)
	if err != nil || token.User != "robot" || !slices.Equal(token.Groups, []string{"deployers", "readers"}) {
		t.Errorf("token: %v, %v", token, err)
	}

	if status.ClusterName != "production" || status.KubeconfigHash != hexSum(secret.Data["kubeconfig"]) ||
		!status.ExpirationTime.Time.Equal(token.expires()) || *status.TargetSecretRef != (v1alpha1.SecretKeyReference{Name: "target", Key: "kubeconfig"}) {
		t.Errorf("status: %+v", status)
	}

	if early := status.ExpirationTime.Add(-4 * time.Hour).Sub(status.NextRotationTime.Time); early < 0 || early > 72*time.Minute+time.Second {
		t.Errorf("the rotation is %s earlier than due", early)
	}

	want := map[string]string{
		v1alpha1.AnnotationExportName: "automation", v1alpha1.AnnotationExportCluster: "production",
		v1alpha1.AnnotationKubeconfigHash: status.KubeconfigHash, v1alpha1.AnnotationExpirationTime: shownTime(status.ExpirationTime.Time),
		v1alpha1.AnnotationLastRotationTime: shownTime(status.LastRotationTime.Time), v1alpha1.AnnotationSpecHash: secret.Annotations[v1alpha1.AnnotationSpecHash],
	}
	if diff := cmp.Diff(want, secret.Annotations); diff != "" || secret.Labels[v1alpha1.LabelExportUID] != "uid-automation" {
		t.Errorf("labels %v, annotations (-want +got):\n%s", secret.Labels, diff)
	}

	if b.asked() != 1 {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	for _, event := range b.seen {
		if strings.Contains(event, config.BearerToken[:20]) {
			t.Error("an event shows the token")
		}
	}
}

// Every change of what a kubeconfig is made from gives a new one; other changes do not.
func TestWhatAsksForANewKubeconfig(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*v1alpha1.OmniKubeconfigExportSpec)
		want int
	}{
		"user":              {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.ServiceAccount.User = "other" }, 2},
		"groups":            {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.ServiceAccount.Groups = []string{"readers"} }, 2},
		"order of groups":   {func(s *v1alpha1.OmniKubeconfigExportSpec) { slices.Reverse(s.ServiceAccount.Groups) }, 1},
		"ttl":               {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TTL = "12h" }, 2},
		"key":               {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Key = "workload.kubeconfig" }, 2},
		"format":            {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.Format = v1alpha1.FormatArgoCD }, 2},
		"context namespace": {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.ContextNamespace = "apps" }, 2},
		"renewBefore":       {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.RenewBefore = "5h" }, 1},
		"target":            {func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "other" }, 2},
		"labels": {func(s *v1alpha1.OmniKubeconfigExportSpec) {
			s.SecretTemplate.Labels = map[string]string{"team": "a"}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.ready()
			b.edit(test.edit)
			b.ready()

			if got := b.asked(); got != test.want {
				t.Errorf("Omni was asked %d times, want %d", got, test.want)
			}
		})
	}
}

func TestSecretTemplate(t *testing.T) {
	b := newBench(t)
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) {
		s.SecretTemplate = v1alpha1.SecretTemplate{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "x"}}
	})
	b.ready()
	b.editSecret("target", func(s *corev1.Secret) { s.Labels["somebody"] = "else" })
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) {
		s.SecretTemplate = v1alpha1.SecretTemplate{Labels: map[string]string{"stage": "b"}}
	})
	b.ready()

	secret := b.secret("target")
	want := map[string]string{v1alpha1.LabelExportUID: "uid-automation", "stage": "b", "somebody": "else"}

	if diff := cmp.Diff(want, secret.Labels); diff != "" || secret.Annotations["note"] != "" {
		t.Errorf("annotation %q, labels (-want +got):\n%s", secret.Annotations["note"], diff)
	}
}

func TestArgoCD(t *testing.T) {
	b := newBench(t)
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.Format = v1alpha1.FormatArgoCD })
	b.ready()

	secret := b.secret("target")
	if secret.Labels["argocd.argoproj.io/secret-type"] != "cluster" || string(secret.Data["name"]) != "production" ||
		string(secret.Data["server"]) != b.omni.KubernetesProxyURL()+"?cluster=production" || len(secret.Data) != 3 {
		t.Errorf("Secret: labels %v, server %s", secret.Labels, secret.Data["server"])
	}

	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.Format = v1alpha1.FormatKubeconfig })
	b.ready()

	if secret := b.secret("target"); secret.Labels["argocd.argoproj.io/secret-type"] != "" || len(secret.Data) != 2 {
		t.Errorf("after the way back: labels %v, %d keys", secret.Labels, len(secret.Data))
	}
}

func TestRepair(t *testing.T) {
	for name, test := range map[string]struct {
		tamper func(*corev1.Secret)
		asked  int
	}{
		"kubeconfig":    {func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("evil") }, 2},
		"value":         {func(s *corev1.Secret) { s.Data["value"] = []byte("evil") }, 1},
		"another key":   {func(s *corev1.Secret) { s.Data["more"] = []byte("x") }, 1},
		"key missing":   {func(s *corev1.Secret) { delete(s.Data, "kubeconfig") }, 2},
		"hash":          {func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationKubeconfigHash] = "x" }, 2},
		"expiration":    {func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationExpirationTime] = "never" }, 1},
		"owner's label": {func(s *corev1.Secret) { delete(s.Labels, v1alpha1.LabelExportUID) }, 1},
		"immutable":     {func(s *corev1.Secret) { s.Immutable = new(true) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.ready()
			b.editSecret("target", test.tamper)
			b.ready()

			secret := b.secret("target")
			if _, err := readKubeconfig(secret.Data["kubeconfig"]); err != nil || len(secret.Data) != 2 ||
				hexSum(secret.Data["value"]) != b.get().Status.KubeconfigHash || secret.Labels[v1alpha1.LabelExportUID] != "uid-automation" {
				t.Errorf("not repaired: labels %v, %d keys, %v", secret.Labels, len(secret.Data), err)
			}

			if b.asked() != test.asked {
				t.Errorf("Omni was asked %d times, want %d", b.asked(), test.asked)
			}
		})
	}
}

func TestForeignTargetIsNeverWritten(t *testing.T) {
	b := newBench(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "target"}, Data: map[string][]byte{"a": []byte("b")}}
	b.must(b.client.Create(t.Context(), foreign))
	before := b.secret("target")

	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `Secret "target"`, "was not made by an OmniKubeconfigExport")

	if diff := cmp.Diff(before, b.secret("target")); diff != "" || b.asked() != 0 {
		t.Errorf("Omni was asked %d times; the Secret changed:\n%s", b.asked(), diff)
	}

	b.must(b.client.Delete(t.Context(), b.get()))
	b.run()

	if diff := cmp.Diff(before, b.secret("target")); diff != "" {
		t.Errorf("the deletion changed it:\n%s", diff)
	}
}

func TestSecondExportWithOneTarget(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.must(b.client.Create(t.Context(), newExport("second")))
	b.export = "second"
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, `belongs to OmniKubeconfigExport "automation"`)

	if b.asked() != 1 {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	// The first lets go: the second takes over.
	b.export = "automation"
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "elsewhere" })
	b.ready()
	b.export = "second"
	b.ready()
}

func TestTargetMoves(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })

	writes := len(b.writes)
	b.ready()

	want := []string{"create *v1.Secret new", "delete *v1.PartialObjectMetadata target", "status automation"}
	if diff := cmp.Diff(want, b.writes[writes:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// The new target cannot be written: the old one stays, and so does the status.
func TestTargetMovesToAForeignSecret(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.must(b.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}}))
	before := b.get().Status

	b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.TargetSecretRef.Name = "new" })
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict)

	if b.secret("target") == nil || b.get().Status.TargetSecretRef.Name != "target" || b.get().Status.KubeconfigHash != before.KubeconfigHash {
		t.Errorf("status: %+v", b.get().Status)
	}
}

func TestRotation(t *testing.T) {
	b := newBench(t)
	b.ready()

	first := b.get().Status
	b.now = first.NextRotationTime.Add(-time.Second)
	b.ready()

	if b.asked() != 1 {
		t.Fatalf("rotated before it was due")
	}

	b.now = first.NextRotationTime.Time
	// Omni's clock is a real one, and a token of the same second is the same token.
	time.Sleep(1100 * time.Millisecond)
	b.ready()

	if second := b.get().Status; b.asked() != 2 || second.KubeconfigHash == first.KubeconfigHash || !second.LastRotationTime.Time.Equal(b.now.Truncate(time.Second)) {
		t.Errorf("asked %d times; status %+v", b.asked(), second)
	}
}

// Omni is down when a renewal is due: the old kubeconfig stays, and the object says so.
func TestRotationWhileOmniIsDown(t *testing.T) {
	b := newBench(t)
	b.ready()

	secret, status := b.secret("target"), b.get().Status
	b.now = status.NextRotationTime.Time
	remove := b.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})

	b.expect(metav1.ConditionTrue, v1alpha1.ReasonRenewalFailing, "valid until "+shownTime(status.ExpirationTime.Time))

	after := b.get().Status
	if diff := cmp.Diff(secret, b.secret("target")); diff != "" || after.KubeconfigHash != status.KubeconfigHash ||
		!after.ExpirationTime.Equal(status.ExpirationTime) || !after.NextRotationTime.Equal(status.NextRotationTime) {
		t.Errorf("status %+v; the Secret changed:\n%s", after, diff)
	}

	remove()
	time.Sleep(1100 * time.Millisecond)

	b.now = b.now.Add(10 * time.Minute)
	b.ready()

	if b.get().Status.KubeconfigHash == status.KubeconfigHash {
		t.Error("not renewed after Omni came back")
	}
}

// Without a valid kubeconfig an Omni that is down is a failure.
func TestExpiredWhileOmniIsDown(t *testing.T) {
	b := newBench(t)
	b.ready()

	status := b.get().Status
	b.now = status.ExpirationTime.Time
	b.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unavailable, Message: "connection refused"})
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonUnreachable)

	if b.secret("target") == nil || b.get().Status.KubeconfigHash != status.KubeconfigHash {
		t.Error("the old Secret or status was not kept")
	}
}

// Omni issues, and then the Secret cannot be written: the same kubeconfig is written later.
func TestWhatWasIssuedIsNotLost(t *testing.T) {
	b := newBench(t)
	b.failWrites = true

	for range 4 {
		if _, err := b.reconcile(); err == nil {
			t.Fatal("a failed write is no error")
		}
	}

	if b.asked() != 1 {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	b.failWrites = false
	b.ready()

	if b.asked() != 1 {
		t.Errorf("Omni was asked %d times", b.asked())
	}
}

// The process dies after the Secret was written and before the status: nothing is issued again.
func TestStatusIsRebuiltFromTheSecret(t *testing.T) {
	b := newBench(t)
	b.ready()

	want := b.get().Status
	lost := b.get()
	lost.Status = v1alpha1.OmniKubeconfigExportStatus{}
	b.must(b.client.Status().Update(t.Context(), lost))
	b.restart()
	b.ready()

	got := b.get().Status
	for _, status := range []*v1alpha1.OmniKubeconfigExportStatus{&want, &got} {
		for i := range status.Conditions {
			status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}

	if diff := cmp.Diff(want, got); diff != "" || b.asked() != 1 {
		t.Errorf("asked %d times; status (-want +got):\n%s", b.asked(), diff)
	}
}

// Somebody who changes the Secret again and again does not make Omni sign for ever.
func TestIssuingIsLimited(t *testing.T) {
	b := newBench(t)
	b.ready()

	for range 20 {
		b.editSecret("target", func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte("evil") })
		b.run()
	}

	if b.asked() != 5 {
		t.Errorf("Omni was asked %d times", b.asked())
	}

	b.expect(metav1.ConditionFalse, v1alpha1.ReasonIssuingLimited, "the Secret was changed by somebody else")

	b.now = b.now.Add(time.Minute)
	b.ready()
}

func TestClusterIsMadeAgain(t *testing.T) {
	b := newBench(t)
	b.ready()

	if _, err := b.omni.State().Teardown(t.Context(), omni.NewCluster("production").Metadata()); err != nil {
		t.Fatal(err)
	}

	deadline := time.Now().Add(20 * time.Second)
	for view, err := b.omni.View("production"); view.Exists || err != nil; view, err = b.omni.View("production") {
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not go")
		}

		time.Sleep(10 * time.Millisecond)
	}

	first := b.get().Status.KubeconfigHash

	// The OmniCluster knows its old ID still.
	b.ready()
	b.createCluster("production", "uid-cluster")
	b.ready()

	if b.get().Status.KubeconfigHash == first || b.asked() != 2 {
		t.Errorf("asked %d times", b.asked())
	}
}

// Who names a cluster of somebody else does not get into it.
func TestClusterOfSomebodyElse(t *testing.T) {
	b := newBench(t)
	b.must(omnisim.AnnotateCluster(t.Context(), b.omni.State(), "production", v1alpha1.MarkOwnerUID, "another-uid"))
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonNotOwned)

	cluster := &v1alpha1.OmniCluster{}
	b.must(b.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "cluster-01"}, cluster))
	cluster.Status.OmniClusterID = ""
	b.must(b.client.Status().Update(t.Context(), cluster))
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonClusterNotInOmni)

	if b.asked() != 0 || b.secret("target") != nil {
		t.Errorf("Omni was asked %d times", b.asked())
	}
}

func TestOmniRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		fault  omnisim.Fault
		reason string
	}{
		"no UUID yet": {omnisim.Fault{Code: codes.Unknown, Message: "failed to get cluster UUID: resource does not exist"}, v1alpha1.ReasonClusterNotInOmni},
		"role":        {omnisim.Fault{Code: codes.PermissionDenied, Message: "insufficient role"}, v1alpha1.ReasonPermissionDenied},
		"refused":     {omnisim.Fault{Code: codes.InvalidArgument, Message: "ttl is too long"}, v1alpha1.ReasonRefused},
		"revoked":     {omnisim.Fault{Code: codes.Unauthenticated, Message: "unknown key"}, v1alpha1.ReasonUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			test.fault.Method = "Kubeconfig"
			remove := b.omni.Inject(test.fault)
			b.expect(metav1.ConditionFalse, test.reason, `OmniConnection "main"`)
			remove()
			b.ready()
		})
	}
}

func TestDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		policy v1alpha1.DeletionPolicy
		gone   bool
		event  string
	}{
		"delete": {v1alpha1.DeletionDelete, true, "SecretDeleted"},
		"orphan": {v1alpha1.DeletionOrphan, false, "SecretLeft"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = test.policy })
			b.ready()
			// Omni has no part in it.
			b.omni.GoDown()
			b.must(b.client.Delete(t.Context(), b.get()))
			b.run()

			if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: b.export}, &v1alpha1.OmniKubeconfigExport{}); err == nil {
				t.Error("the export is still there")
			}

			if gone := b.secret("target") == nil; gone != test.gone {
				t.Errorf("the Secret is gone: %v", gone)
			}

			if !slices.ContainsFunc(b.seen, func(event string) bool { return strings.Contains(event, test.event) }) {
				t.Errorf("events: %v", b.seen)
			}
		})
	}
}

// The target is held by a finalizer: it is made again when it is gone.
func TestTargetIsBeingDeleted(t *testing.T) {
	b := newBench(t)
	b.ready()
	b.editSecret("target", func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} })
	b.must(b.client.Delete(t.Context(), b.secret("target")))
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonTargetDeleting, "example.com/hold")
	b.editSecret("target", func(s *corev1.Secret) { s.Finalizers = nil })
	b.ready()
}

func TestMissingSource(t *testing.T) {
	b := newBench(t)
	b.ready()

	secret := b.secret("target")
	b.must(b.client.Delete(t.Context(), &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster-01"}}))
	b.expect(metav1.ConditionFalse, v1alpha1.ReasonClusterNotFound, `OmniCluster "cluster-01"`)

	if diff := cmp.Diff(secret, b.secret("target")); diff != "" {
		t.Errorf("the Secret changed:\n%s", diff)
	}
}
