package clusteraccess

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// visit is a release that opens the cluster of an OmniCluster. Empty fields mean a cluster that answers and has no
// identity, and a new release.
type visit struct {
	copied     bool   // the OmniCluster belongs to another hub
	hub        string // that last looked at the OmniCluster
	otherHub   string // status.otherHub of the release
	code       int32  // of the cluster; 200
	system     string // UID of kube-system; without one it may not be read
	token      string // cluster_uuid of the token; empty: not a token of Omni
	kubeconfig func(good []byte) map[string][]byte

	noParent, deleted     bool
	observed              bool // changePolicy of the OmniCluster is Observe
	exported              bool // an OmniKubeconfigExport is to write the Secret
	omniID, known, accept string
}

// outcome repeats Open until the cluster has answered, and counts the requests to the cluster.
func (v visit) outcome(t *testing.T) (opened *Opened, outcome loop.Outcome, api client.Client, asked int32) {
	t.Helper()

	var requests atomic.Int32

	access, release := v.come(t, &requests)

	for {
		opened, outcome, err := access.Open(t.Context(), RequesterOf(release, nil))
		if err != nil {
			t.Fatal(err)
		}

		if !outcome.Postpones() {
			return opened, outcome, access.Client, requests.Load()
		}
	}
}

// come returns the Access and the release.
func (v visit) come(t *testing.T, requests *atomic.Int32) (*Access, *v1alpha1.OmniHelmRelease) {
	t.Helper()

	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)

		switch {
		case v.code != 0:
			http.Error(w, "no", int(v.code))
		case r.URL.Path == "/version":
			respond(w, http.StatusOK, `{"gitVersion":"v1.37.1"}`)
		case v.system == "":
			respond(w, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		default:
			respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"`+v.system+`"}}`)
		}
	})

	if v.token != "" {
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"cluster_uuid":"` + v.token + `"}`))
		good = []byte(strings.Replace(string(good), "s3cret-token", "e30."+claims+".c2ln", 1))
	}

	data := map[string][]byte{"kubeconfig": good}
	if v.kubeconfig != nil {
		data = v.kubeconfig(good)
	}

	release := &v1alpha1.OmniHelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app", UID: "uid"}}
	release.Spec.ClusterRef.Name, release.Spec.KubeconfigSecretRef.Name, release.Status.ClusterID = "demo", "access", v.known
	release.Status.OtherHub = v.otherHub
	release.Annotations = map[string]string{v1alpha1.AnnotationAcceptCluster: v.accept}

	api := v.api(t, data)

	return &Access{Clusters: NewClusters(nil, loopback()), Client: api, Live: api, HubID: "hub-1"}, release
}

func (v visit) api(t *testing.T, data map[string][]byte) client.Client {
	t.Helper()

	builder := looptest.NewAPI()

	// One export that writes the Secret, and one of another namespace.
	for _, namespace := range []string{"ns", "other"} {
		export := &v1alpha1.OmniKubeconfigExport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "export"}}
		export.Spec.TargetSecretRef.Name = "access"

		if v.exported || namespace == "other" {
			builder.WithObjects(export)
		}
	}

	if data != nil {
		builder.WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "access"}, Data: data})
	}

	if !v.noParent {
		parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
		parent.Status.OmniClusterID, parent.Status.HubID = v.omniID, v.hub

		if v.observed {
			parent.Spec.ChangePolicy = v1alpha1.ChangePolicyObserve
		}

		if v.copied {
			parent.Status.OtherHub = "hub-2"
		}

		if v.deleted {
			parent.DeletionTimestamp, parent.Finalizers = &metav1.Time{Time: time.Now()}, []string{v1alpha1.Finalizer}
		}

		builder.WithObjects(parent)
	}

	return builder.Build()
}

// with returns a function that replaces a part of a kubeconfig.
func with(old, replacement string) func([]byte) map[string][]byte {
	return func(good []byte) map[string][]byte {
		return map[string][]byte{"kubeconfig": []byte(strings.Replace(string(good), old, replacement, 1))}
	}
}

func TestOpen(t *testing.T) {
	const waits, stalls, opens = "waits", "stalls", "opens"

	exec := "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}"

	for name, test := range map[string]struct {
		visit
		verdict, reason, says string
		asks                  bool
	}{
		"no OmniCluster":                      {visit{noParent: true}, waits, v1alpha1.ReasonClusterNotFound, `"demo" does not exist`, false},
		"the OmniCluster is being deleted":    {visit{deleted: true}, waits, v1alpha1.ReasonClusterDeleting, "is being deleted; nothing new", false},
		"the OmniCluster is another hub's":    {visit{copied: true}, stalls, v1alpha1.ReasonOwnedByOtherHub, `the cluster of OmniCluster "demo" carries the mark of another hub in Omni, hub-2`, false},
		"another hub has looked at it":        {visit{hub: "hub-2", token: "A", omniID: "A", known: "A"}, waits, v1alpha1.ReasonClusterNotInOmni, `OmniCluster "demo" was last looked at by another hub, hub-2 (this hub is hub-1)`, false},
		"only another hub, and that is noted": {visit{hub: "hub-2", otherHub: "hub-2"}, waits, v1alpha1.ReasonClusterNotInOmni, "another hub, hub-2", false},
		"this hub now, and another is noted":  {visit{hub: "hub-1", otherHub: "hub-2", system: "U"}, opens, v1alpha1.ReasonConnected, "kube-system", true},
		"this hub has looked at it":           {visit{hub: "hub-1", token: "A", omniID: "A"}, opens, v1alpha1.ReasonConnected, "connected to cluster A", true},
		"no Secret":                           {visit{kubeconfig: func([]byte) map[string][]byte { return nil }}, waits, v1alpha1.ReasonKubeconfigNotFound, `no kubeconfig: Secret "access" does not exist, and no OmniKubeconfigExport in the namespace has it as spec.targetSecretRef: create one, or the Secret`, false},
		"no Secret yet":                       {visit{exported: true, kubeconfig: func([]byte) map[string][]byte { return nil }}, waits, v1alpha1.ReasonKubeconfigNotFound, `no kubeconfig: Secret "access" does not exist; OmniKubeconfigExport "export" is to write it: see its conditions`, false},
		"no key":                              {visit{kubeconfig: func([]byte) map[string][]byte { return map[string][]byte{"other": nil} }}, waits, v1alpha1.ReasonKubeconfigNotFound, `no key "kubeconfig"`, false},
		"no kubeconfig in it":                 {visit{kubeconfig: with("current-context: it", "current-context: that")}, stalls, v1alpha1.ReasonKubeconfigInvalid, `Secret "access": `, false},
		"no credentials":                      {visit{kubeconfig: with("token: s3cret-token", "")}, stalls, v1alpha1.ReasonKubeconfigInvalid, "no token", false},
		"a program":                           {visit{kubeconfig: with("token: s3cret-token", exec)}, stalls, v1alpha1.ReasonUnsafeKubeconfig, "user.exec", false},
		"a path to a token":                   {visit{kubeconfig: with("token: s3cret-token", "tokenFile: /var/run/secrets/token")}, stalls, v1alpha1.ReasonUnsafeKubeconfig, "user.tokenFile", false},
		"a path to a certificate":             {visit{kubeconfig: with("token: s3cret-token", "client-certificate: /c, client-key: /k")}, stalls, v1alpha1.ReasonUnsafeKubeconfig, "user.client-certificate", false},
		"a path to an authority":              {visit{kubeconfig: with("server:", "certificate-authority: /ca, server:")}, stalls, v1alpha1.ReasonUnsafeKubeconfig, "cluster.certificate-authority", false},
		"credentials that are refused":        {visit{code: http.StatusUnauthorized}, stalls, v1alpha1.ReasonUnauthenticated, "does not accept the credentials", true},
		"a right is missing":                  {visit{code: http.StatusForbidden}, waits, v1alpha1.ReasonForbidden, "RBAC", true},
		"it does not answer":                  {visit{code: http.StatusBadGateway}, waits, v1alpha1.ReasonClusterUnreachable, "cannot be reached", true},
		"no identity":                         {visit{omniID: "A"}, opens, v1alpha1.ReasonIdentityUnknown, "was not checked", true},
		"no identity, but one before":         {visit{known: "A"}, stalls, v1alpha1.ReasonWrongCluster, "accept-cluster: none", true},
		"by kube-system":                      {visit{system: "U"}, opens, v1alpha1.ReasonConnected, "kube-system", true},
		"by token":                            {visit{token: "A", omniID: "A"}, opens, v1alpha1.ReasonConnected, "connected to cluster A", true},
		"another OmniCluster's":               {visit{token: "B", omniID: "A"}, stalls, v1alpha1.ReasonWrongCluster, "is for cluster B", true},
		"not known yet whose it is":           {visit{token: "B"}, waits, v1alpha1.ReasonClusterNotInOmni, "status.omniClusterID", true},
		"not known yet, the same as before":   {visit{token: "B", known: "B"}, waits, v1alpha1.ReasonClusterNotInOmni, "status.omniClusterID", true},
		"only observed, the same as before":   {visit{token: "B", known: "B", observed: true}, opens, v1alpha1.ReasonConnected, "connected to cluster B", true},
		"not known yet, another than before":  {visit{token: "B", known: "A"}, stalls, v1alpha1.ReasonWrongCluster, "before it was A", true},
		"not known yet, accepted by a person": {visit{token: "B", accept: "B"}, opens, v1alpha1.ReasonConnected, "as accepted", true},
	} {
		t.Run(name, func(t *testing.T) {
			opened, outcome, api, asked := test.outcome(t)

			verdict := waits
			if outcome.Stalls() {
				verdict = stalls
			} else if outcome.Continues() {
				verdict = opens
			}

			if verdict != test.verdict || outcome.Reason() != test.reason || !strings.Contains(outcome.Message(), test.says) {
				t.Errorf("%s, %s: %s", verdict, outcome.Reason(), outcome.Message())
			}

			if (opened != nil) != (test.verdict == opens) || asked > 0 != test.asks {
				t.Errorf("opened %t, %d requests", opened != nil, asked)
			}

			if opened != nil && len(opened.Kubeconfig) != 64 {
				t.Errorf("the digest of the kubeconfig is %q", opened.Kubeconfig)
			}

			if strings.Contains(outcome.Message(), "s3cret") {
				t.Errorf("the token is shown: %s", outcome.Message())
			}

			// A Secret that holds no kubeconfig, or a refused one, gets no finalizer.
			if held(t, api) != test.asks {
				t.Errorf("%d requests, held %t", asked, held(t, api))
			}
		})
	}
}

func held(t *testing.T, api client.Client) bool {
	t.Helper()

	secret := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "access"}, secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}

	return len(secret.Finalizers) == 1 && secret.Finalizers[0] == v1alpha1.KubeconfigInUseFinalizer
}

// TestLetGoOfWhatMayBeAnybodys: for a release that is being deleted, with a token of Omni for an unverified cluster,
// nothing is done in that cluster.
func TestLetGoOfWhatMayBeAnybodys(t *testing.T) {
	for name, test := range map[string]struct {
		visit
		want   Action
		reason string
		says   string
	}{
		"its OmniCluster shows no ID yet":  {visit{token: "A"}, ActionWait, "ClusterNotInOmni", "waiting for its ID"},
		"its OmniCluster is gone":          {visit{token: "A", noParent: true}, ActionLetGo, "Deleting", "its OmniCluster is gone"},
		"the OmniCluster's":                {visit{token: "A", omniID: "A"}, ActionCleanUp, "Deleting", ""},
		"the same as before":               {visit{token: "A", known: "A"}, ActionCleanUp, "Deleting", ""},
		"the same as before, orphaned":     {visit{token: "A", known: "A", noParent: true}, ActionCleanUp, "Deleting", ""},
		"another than before, no ID shown": {visit{token: "A", known: "B"}, ActionWait, "WrongCluster", "before it was B"},
		"another hub has looked at it":     {visit{hub: "hub-2", token: "A", omniID: "A", known: "A"}, ActionWait, "ClusterNotInOmni", "another hub, hub-2"},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			access, release := test.come(t, &atomic.Int32{})
			release.DeletionTimestamp = &metav1.Time{Time: now}

			for {
				cleanup, outcome, err := access.PlanCleanup(t.Context(), RequesterOf(release, nil), now)
				if err != nil {
					t.Fatal(err)
				}

				if strings.Contains(outcome.Message(), "waiting for the workload cluster") {
					continue // it has not answered yet
				}

				if cleanup.Action != test.want || outcome.Reason() != test.reason || !strings.Contains(outcome.Message(), test.says) {
					t.Errorf("got %d, %s: %s", cleanup.Action, outcome.Reason(), outcome.Message())
				}

				return
			}
		})
	}
}
