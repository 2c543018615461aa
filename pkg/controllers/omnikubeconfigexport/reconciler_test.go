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
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func TestFirstExport(t *testing.T) {
	f := newFixture(t)
	f.ready()

	secret, status := f.secret("target"), f.get().Status
	if secret == nil || len(secret.Data) != 2 || string(secret.Data["kubeconfig"]) != string(secret.Data["value"]) {
		t.Fatal("the Secret does not hold the kubeconfig under kubeconfig and value")
	}

	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil || config.Host != f.omni.KubernetesProxyURL() || string(config.CAData) != string(f.omni.CAPEM()) {
		t.Errorf("kubeconfig: host %v, error %v", config.Host, err)
	}

	token, err := readToken(config.BearerToken)
	if err != nil || token.User != "robot" || !slices.Equal(token.Groups, []string{"deployers", "readers"}) {
		t.Errorf("token: %v, %v", token, err)
	}

	if status.ClusterName != "production" || status.KubeconfigHash != hexSum(secret.Data["kubeconfig"]) ||
		!status.ExpirationTime.Time.Equal(token.expires()) || *status.TargetSecretRef != (v1alpha1.TargetSecretReference{Name: "target", Key: "kubeconfig"}) {
		t.Errorf("status: %+v", status)
	}

	if early := status.ExpirationTime.Add(-4 * time.Hour).Sub(status.NextRotationTime.Time); early < 0 || early > 72*time.Minute+time.Second {
		t.Errorf("the rotation is %s earlier than due", early)
	}

	want := map[string]string{
		v1alpha1.AnnotationExportName: "automation", v1alpha1.AnnotationExportCluster: "production",
		v1alpha1.AnnotationKubeconfigHash: status.KubeconfigHash, v1alpha1.AnnotationExpirationTime: words.Time(status.ExpirationTime.Time),
		v1alpha1.AnnotationLastRotationTime: words.Time(status.LastRotationTime.Time), v1alpha1.AnnotationSpecHash: secret.Annotations[v1alpha1.AnnotationSpecHash],
		v1alpha1.AnnotationExportSecret: namespace + "/target",
	}
	if diff := cmp.Diff(want, secret.Annotations); diff != "" || secret.Labels[v1alpha1.LabelExportUID] != "uid-automation" {
		t.Errorf("labels %v, annotations (-want +got):\n%s", secret.Labels, diff)
	}

	if f.asked() != 1 {
		t.Errorf("Omni was asked %d times", f.asked())
	}

	for _, event := range f.events.All() {
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
			s.SecretTemplate = &v1alpha1.SecretTemplate{Labels: map[string]string{"team": "a"}}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()
			f.edit(test.edit)
			f.ready()

			if got := f.asked(); got != test.want {
				t.Errorf("Omni was asked %d times, want %d", got, test.want)
			}
		})
	}
}

func TestSecretTemplate(t *testing.T) {
	f := newFixture(t)
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) {
		s.SecretTemplate = &v1alpha1.SecretTemplate{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "x"}}
	})
	f.ready()
	f.editSecret("target", func(s *corev1.Secret) { s.Labels["somebody"] = "else" })
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) {
		s.SecretTemplate = &v1alpha1.SecretTemplate{Labels: map[string]string{"stage": "b"}}
	})
	f.ready()

	secret := f.secret("target")
	want := map[string]string{
		v1alpha1.LabelExportUID: "uid-automation", v1alpha1.MarkHub: thisHub, v1alpha1.LabelCluster: "cluster-01", "stage": "b", "somebody": "else",
	}

	if diff := cmp.Diff(want, secret.Labels); diff != "" || secret.Annotations["note"] != "" {
		t.Errorf("annotation %q, labels (-want +got):\n%s", secret.Annotations["note"], diff)
	}
}

func TestArgoCD(t *testing.T) {
	f := newFixture(t)
	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.Format = v1alpha1.FormatArgoCD })
	f.ready()

	secret := f.secret("target")
	if secret.Labels["argocd.argoproj.io/secret-type"] != "cluster" || string(secret.Data["name"]) != "production" ||
		string(secret.Data["server"]) != f.omni.KubernetesProxyURL()+"?cluster=production" || len(secret.Data) != 3 {
		t.Errorf("Secret: labels %v, server %s", secret.Labels, secret.Data["server"])
	}

	f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.Format = v1alpha1.FormatKubeconfig })
	f.ready()

	if secret := f.secret("target"); secret.Labels["argocd.argoproj.io/secret-type"] != "" || len(secret.Data) != 2 {
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
			f := newFixture(t)
			f.ready()
			f.editSecret("target", test.tamper)
			f.ready()

			secret := f.secret("target")
			if _, err := readKubeconfig(secret.Data["kubeconfig"]); err != nil || len(secret.Data) != 2 ||
				hexSum(secret.Data["value"]) != f.get().Status.KubeconfigHash || secret.Labels[v1alpha1.LabelExportUID] != "uid-automation" {
				t.Errorf("not repaired: labels %v, %d keys, %v", secret.Labels, len(secret.Data), err)
			}

			if f.asked() != test.asked {
				t.Errorf("Omni was asked %d times, want %d", f.asked(), test.asked)
			}
		})
	}
}

// Somebody changes the Secret back at once. The first correction is made at once, the next ones once a minute; what is new, asked for
// or missing is written at once.
func TestTwoWritersOfTheSecret(t *testing.T) {
	for name, end := range map[string]func(*fixture){
		"a minute passes": func(f *fixture) { f.now = f.now.Add(time.Minute) },
		"the spec changes": func(f *fixture) {
			f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) {
				s.SecretTemplate = &v1alpha1.SecretTemplate{Labels: map[string]string{"team": "a"}}
			})
		},
		"somebody asks": func(f *fixture) {
			export := f.get()
			export.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"}
			f.must(f.client.Update(t.Context(), export))
		},
		"the Secret is deleted": func(f *fixture) { f.must(f.client.Delete(t.Context(), f.secret("target"))) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()

			tamper := func() { f.editSecret("target", func(s *corev1.Secret) { s.Data["more"] = []byte("x") }) }

			tamper()
			f.ready()

			for range 10 {
				tamper()

				if wait := f.run().RequeueAfter; wait <= 0 || wait > time.Minute {
					t.Fatalf("the next run is in %s", wait)
				}
			}

			f.expect(metav1.ConditionFalse, v1alpha1.ReasonConflict, "target", "once a minute")

			if corrected := f.told("SecretCorrected"); corrected != 1 {
				t.Errorf("corrected %d times", corrected)
			}

			end(f)
			f.ready()

			if more, left := f.secret("target").Data["more"]; left {
				t.Errorf("the Secret still has %q", more)
			}
		})
	}
}

func TestClusterIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	f.ready()

	if _, err := f.omni.State().Teardown(t.Context(), omni.NewCluster("production").Metadata()); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "the cluster goes", func() bool {
		view, err := f.omni.View("production")

		return err == nil && !view.Exists
	})

	first := f.get().Status.KubeconfigHash

	// The OmniCluster knows its old ID still.
	f.ready()
	f.createCluster("production", "uid-cluster")
	f.ready()

	if f.get().Status.KubeconfigHash == first || f.asked() != 2 {
		t.Errorf("asked %d times", f.asked())
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
			f := newFixture(t)
			test.fault.Method = "Kubeconfig"
			remove := f.omni.Inject(test.fault)
			f.expect(metav1.ConditionFalse, test.reason, `OmniConnection "main"`)
			remove()
			f.ready()
		})
	}
}

// A kubeconfig that Omni has just issued and that is not valid by our clock would be replaced at once, again and again.
func TestClocksDiffer(t *testing.T) {
	for name, off := range map[string]time.Duration{"ours is ahead": 25 * time.Hour, "ours is behind": -25 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.now = f.now.Add(off)
			f.expect(metav1.ConditionFalse, v1alpha1.ReasonClockSkew, "clocks of Omni and omni-controller")

			if asked := f.asked(); asked != 1 {
				t.Errorf("Omni was asked %d times", asked)
			}

			// It is kept, and stored when the clock is mended.
			f.now = f.now.Add(-off).Add(clockPause)
			f.ready()

			if asked := f.asked(); asked != 1 {
				t.Errorf("Omni was asked %d times", asked)
			}
		})
	}
}

// Omni's clock stays wrong, or ours: each request costs a kubeconfig that nobody can revoke.
func TestClocksDifferForLong(t *testing.T) {
	f := newFixture(t)
	f.now = f.now.Add(25 * time.Hour)

	for range 24 * 6 {
		f.expect(metav1.ConditionFalse, v1alpha1.ReasonClockSkew, "clocks of Omni and omni-controller")
		f.now = f.now.Add(10 * time.Minute)
	}

	if asked := f.asked(); asked > 9 {
		t.Errorf("Omni was asked %d times in a day", asked)
	}
}

// TestOurClockJumps: what is in the Secret stays as long as our clock is wrong, and hardly anything is issued.
func TestOurClockJumps(t *testing.T) {
	for name, test := range map[string]struct {
		by     time.Duration
		told   bool // by the API servers
		reason string
		says   string
		asked  int
		again  int // when the clock is mended
	}{
		"back by more than the ttl":          {by: -25 * time.Hour, reason: v1alpha1.ReasonClockSkew, says: "was set back", asked: 1, again: 1},
		"back by more than the ttl, told of": {by: -25 * time.Hour, told: true, reason: v1alpha1.ReasonClockSkew, says: "kube-apiserver and of omni-controller differ by about 25h", asked: 1, again: 1},
		"back by some hours":                 {by: -10 * time.Hour, reason: v1alpha1.ReasonClockSkew, says: "was set back", asked: 1, again: 1},
		"ahead, told of":                     {by: 30 * time.Hour, told: true, reason: v1alpha1.ReasonClockSkew, says: "kube-apiserver and of omni-controller differ by about 30h", asked: 1, again: 1},
		"ahead until it is due":              {by: 23 * time.Hour, reason: v1alpha1.ReasonWritten, asked: 2, again: 2},
		"ahead by less than until it is due": {by: 5 * time.Hour, reason: v1alpha1.ReasonWritten, asked: 1, again: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ready()

			f.now = f.now.Add(test.by)
			if test.told {
				f.differ = skew.Difference{Server: "kube-apiserver", Ahead: -test.by}
			}

			f.expect(metav1.ConditionTrue, test.reason, test.says)

			secret, version := f.secret("target"), f.get().ResourceVersion

			for range 4 {
				f.expect(metav1.ConditionTrue, test.reason, test.says)
				f.now = f.now.Add(10 * time.Minute)
			}

			if f.asked() != test.asked || !cmp.Equal(secret, f.secret("target")) || f.get().ResourceVersion != version {
				t.Errorf("Omni was asked %d times, and the Secret or the status were written again", f.asked())
			}

			f.now, f.differ = f.now.Add(-test.by), skew.Difference{}
			f.ready()
			f.expect(metav1.ConditionTrue, v1alpha1.ReasonWritten)

			if f.asked() != test.again {
				t.Errorf("Omni was asked %d times when the clock was mended", f.asked())
			}
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
			f := newFixture(t)
			f.edit(func(s *v1alpha1.OmniKubeconfigExportSpec) { s.DeletionPolicy = test.policy })
			f.ready()
			// Omni has no part in it.
			f.omni.GoDown()
			f.must(f.client.Delete(t.Context(), f.get()))
			f.run()

			if err := f.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: f.export}, &v1alpha1.OmniKubeconfigExport{}); err == nil {
				t.Error("the export is still there")
			}

			if gone := f.secret("target") == nil; gone != test.gone {
				t.Errorf("the Secret is gone: %v", gone)
			}

			if !slices.ContainsFunc(f.events.All(), func(event string) bool { return strings.Contains(event, test.event) }) {
				t.Errorf("events: %v", f.events.All())
			}
		})
	}
}

// The target is held by a finalizer: it is made again when it is gone.
func TestTargetIsBeingDeleted(t *testing.T) {
	f := newFixture(t)
	f.ready()
	f.editSecret("target", func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} })
	f.must(f.client.Delete(t.Context(), f.secret("target")))
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonTargetDeleting, "example.com/hold")
	f.editSecret("target", func(s *corev1.Secret) { s.Finalizers = nil })
	f.ready()
}

func TestMissingSource(t *testing.T) {
	f := newFixture(t)
	f.ready()

	secret := f.secret("target")
	f.must(f.client.Delete(t.Context(), &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster-01"}}))
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonClusterNotFound, `OmniCluster "cluster-01"`)

	if diff := cmp.Diff(secret, f.secret("target")); diff != "" {
		t.Errorf("the Secret changed:\n%s", diff)
	}
}

// Who may choose the Omni chooses the server of the kubeconfig. What no workload cluster may be is not written for others either:
// Flux and Argo CD connect to it with what they deploy.
func TestServersThatNobodyIsLedTo(t *testing.T) {
	f := newFixture(t)
	f.reconciler.options.Guard = dialguard.Guard{} // the simulator is at a loopback address
	f.run()
	f.expect(metav1.ConditionFalse, v1alpha1.ReasonUnsafeKubeconfig, "loopback address 127.0.0.1", "not stored")

	for _, test := range []struct {
		server, endpoint string
		fine             bool
	}{
		{"https://omni.example.com:8100", "https://omni.example.com", true},
		{"https://10.1.2.3:8100", "https://omni.example.com", true},
		{"https://169.254.169.254", "https://omni.example.com", false},
		{"https://[::1]:6443", "https://omni.example.com", false},
		{"http://omni.example.com:8100", "https://omni.example.com", false},
		{"http://omni.example.com:8100", "grpc://omni.example.com", true},
	} {
		if err := f.reconciler.checkServer(test.server, test.endpoint); err == nil != test.fine {
			t.Errorf("%s from %s: %v", test.server, test.endpoint, err)
		}
	}
}
