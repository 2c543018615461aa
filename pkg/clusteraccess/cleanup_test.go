package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/looptest"
)

// cleanupFixture is a sync that is being deleted and has no OmniCluster any more, a clock, and a workload cluster that
// answers with a status code that the test sets.
type cleanupFixture struct {
	*testing.T

	code      atomic.Int32 // of the workload cluster
	ours      error        // of the management cluster; nil if it answers
	only      string       // the kind of which ours is; empty: all
	clock     time.Time
	access    *Access
	requester Requester
}

func newCleanupFixture(t *testing.T, objects ...client.Object) *cleanupFixture {
	t.Helper()

	l := &cleanupFixture{T: t, clock: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	l.code.Store(http.StatusOK)

	config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch code := int(l.code.Load()); {
		case code != http.StatusOK:
			w.Header().Set("Retry-After", "0")
			http.Error(w, "not now", code) // like Omni's proxy, without a Status
		case r.URL.Path == "/version":
			respond(w, code, `{"gitVersion":"v1.37.1"}`)
		default:
			respond(w, code, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`)
		}
	})

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "access"}, Data: map[string][]byte{"kubeconfig": config}}
	api := looptest.NewAPI(append(objects, secret)...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if l.ours != nil && (l.only == "" || fmt.Sprintf("%T", object) == l.only) {
				return l.ours
			}

			return api.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := api.List(ctx, list, options...)
			if exports, ok := list.(*v1alpha1.OmniKubeconfigExportList); ok {
				slices.Reverse(exports.Items) // a cache lists in any order
			}

			return err
		},
	}).Build()

	sync := &v1alpha1.OmniSecretSync{}
	sync.Namespace, sync.Name, sync.UID = "ns", "pull", "uid"
	sync.DeletionTimestamp = &metav1.Time{Time: l.clock}
	sync.Spec.ClusterRef.Name, sync.Spec.KubeconfigSecretRef.Name = "demo", "access"

	l.access = &Access{Clusters: NewClusters(func() time.Time { return l.clock }, loopback()), Client: api, Live: api, HubID: "hub-1"}
	l.requester = RequesterOf(sync, nil)

	return l
}

// plan repeats PlanCleanup until the cluster has answered, and returns the result.
func (l *cleanupFixture) plan() (Cleanup, string, error) {
	l.Helper()

	for {
		cleanup, outcome, err := l.access.PlanCleanup(l.Context(), l.requester, l.clock)
		if err != nil || !strings.Contains(outcome.Message(), "waiting for the workload cluster") {
			return cleanup, outcome.Message(), err
		}
	}
}

func (l *cleanupFixture) expect(want Action, words string) {
	l.Helper()

	if cleanup, message, err := l.plan(); err != nil || cleanup.Action != want || !strings.Contains(message, words) || (cleanup.Opened != nil) != (want == ActionCleanUp) {
		l.Errorf("at %s: got %d %q, %v; want %d %q", l.clock.Format(time.TimeOnly), cleanup.Action, message, err, want, words)
	}
}

// TestAKubeconfigThatIsExported: an export that writes the Secret again ends the wait, also if the Secret was emptied to
// have a new kubeconfig. Without an export, nobody will.
func TestAKubeconfigThatIsExported(t *testing.T) {
	demo := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	export := &v1alpha1.OmniKubeconfigExport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "export"}}
	export.Spec.TargetSecretRef.Name = "access"

	second := export.DeepCopy()
	second.Name = "second"

	deleted := export.DeepCopy()
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{v1alpha1.Finalizer}

	for name, test := range map[string]struct {
		objects []client.Object
		want    Action
		says    string
	}{
		"exported":                       {[]client.Object{demo, export}, ActionWait, `OmniKubeconfigExport "export" is to write it: see its conditions; it is tried until 2026-01-01T13:00:00Z`},
		"exported twice":                 {[]client.Object{demo, export, second}, ActionWait, `OmniKubeconfigExport "export" is to write it`},
		"exported, the OmniCluster gone": {[]client.Object{export}, ActionLetGo, "its OmniCluster is gone"},
		"exported, the export deleted":   {[]client.Object{demo, deleted}, ActionLetGo, "no OmniKubeconfigExport in the namespace"},
		"not exported":                   {[]client.Object{demo}, ActionLetGo, "no OmniKubeconfigExport in the namespace"},
	} {
		for state, lose := range map[string]func(*cleanupFixture, *corev1.Secret) error{
			"emptied": func(f *cleanupFixture, secret *corev1.Secret) error {
				secret.Data = nil
				return f.access.Client.Update(f.Context(), secret)
			},
			"deleted": func(f *cleanupFixture, secret *corev1.Secret) error {
				return f.access.Client.Delete(f.Context(), secret)
			},
		} {
			t.Run(name+", "+state, func(t *testing.T) {
				f := newCleanupFixture(t, test.objects...)

				secret := &corev1.Secret{}
				if err := f.access.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "access"}, secret); err != nil {
					t.Fatal(err)
				}

				if err := lose(f, secret); err != nil {
					t.Fatal(err)
				}

				f.expect(test.want, test.says)
			})
		}
	}
}

// TestOneBadAnswerIsNotTheEnd: the OmniCluster is gone. One bad answer of an API that is overloaded or restarts does
// not end the clean-up; a cluster that never answers again does.
func TestOneBadAnswerIsNotTheEnd(t *testing.T) {
	for _, code := range []int32{
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	} {
		t.Run(http.StatusText(int(code)), func(t *testing.T) {
			l := newCleanupFixture(t)

			l.code.Store(code)
			l.expect(ActionWait, "until 2026-01-01T12:02:00Z")

			l.clock = l.clock.Add(time.Minute)
			l.code.Store(http.StatusOK)
			l.expect(ActionCleanUp, "")

			// The next problem has its own deadline.
			l.clock = l.clock.Add(time.Hour)
			l.code.Store(code)
			l.expect(ActionWait, "until 2026-01-01T13:03:00Z")

			l.clock = l.clock.Add(2 * time.Minute)
			l.expect(ActionLetGo, "its OmniCluster is gone")
		})
	}
}

// TestRefusalIsTheEnd checks that without an OmniCluster, problems that do not pass by themselves end the clean-up.
func TestRefusalIsTheEnd(t *testing.T) {
	for _, code := range []int32{http.StatusUnauthorized, http.StatusForbidden} {
		l := newCleanupFixture(t)

		l.code.Store(code)
		l.expect(ActionLetGo, "its OmniCluster is gone")
	}
}

// TestOurOwnAPIFails checks that a bad answer of the management cluster is an error to retry, and no problem of the
// workload cluster.
func TestOurOwnAPIFails(t *testing.T) {
	for _, failure := range []error{
		apierrors.NewTooManyRequests("not now", 1), apierrors.NewServiceUnavailable("not now"), apierrors.NewInternalError(errors.New("not now")),
		context.DeadlineExceeded,
	} {
		for _, only := range []string{"", "*v1alpha1.OmniCluster", "*v1.Secret"} {
			l := newCleanupFixture(t)
			l.ours, l.only = failure, only

			if cleanup, _, err := l.plan(); !errors.Is(err, failure) || cleanup.Action != 0 {
				t.Errorf("%q, %v: got %d, %v", only, failure, cleanup.Action, err)
			}

			l.ours = nil
			l.expect(ActionCleanUp, "")
		}
	}
}

// TestCleanupOfAProcessThatStops checks that a cluster does not count as gone because a process ends in the middle of its question.
func TestCleanupOfAProcessThatStops(t *testing.T) {
	l := newCleanupFixture(t)
	l.code.Store(http.StatusForbidden)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if cleanup, _, err := l.access.PlanCleanup(ctx, l.requester, l.clock); !errors.Is(err, context.Canceled) || cleanup.Action != 0 {
		t.Errorf("got %d, %v", cleanup.Action, err)
	}
}

// TestCleanupWithAParent: while the OmniCluster exists, the deadline is an hour, and at least two minutes of this
// process.
func TestCleanupWithAParent(t *testing.T) {
	parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	l := newCleanupFixture(t, parent)

	l.code.Store(http.StatusServiceUnavailable)
	l.expect(ActionWait, "until 2026-01-01T13:00:00Z")

	// Another process, long after the deadline.
	l.clock = l.clock.Add(3 * time.Hour)
	l.access.stuckCleanups = stuckCleanups{}
	l.expect(ActionWait, "until 2026-01-01T15:02:00Z")

	l.clock = l.clock.Add(3 * time.Minute)
	l.expect(ActionLetGo, "the clean-up did not succeed")
}

// TestNothingIsCleanedUpInAClusterOfAnotherHub: while the other hub suspends a release or a copy, this hub's mark is on it
// still. Whoever deletes the objects that are left on a former hub does not mean what runs.
func TestNothingIsCleanedUpInAClusterOfAnotherHub(t *testing.T) {
	demo := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	demo.Status.OtherHub = "hub-2"

	gone := newCleanupFixture(t)
	gone.requester.OtherHub = "hub-2" // as the last run left it

	for name, f := range map[string]*cleanupFixture{
		"the OmniCluster says so": newCleanupFixture(t, demo),
		"the OmniCluster is gone": gone,
	} {
		cleanup, _, err := f.plan()
		if err != nil || cleanup.Action != ActionLetGo || cleanup.NothingLeft || cleanup.Opened != nil || !strings.Contains(cleanup.Why, "another hub in Omni, hub-2") {
			t.Errorf("%s: got %+v, %v; want to let go", name, cleanup, err)
		}
	}
}

// TestCleanupBeforeThisHubHasSeenTheCluster: the OmniCluster was restored from a snapshot of another hub, with the conditions that it
// had there. Whether the cluster is this hub's is not known before its controller has read Omni; if it never can, everything stays.
func TestCleanupBeforeThisHubHasSeenTheCluster(t *testing.T) {
	restored := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	restored.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnectionReady, Status: metav1.ConditionTrue}}
	restored.Status.HubID = "hub-2"

	f := newCleanupFixture(t, restored)
	f.expect(ActionWait, `last looked at by another hub, hub-2 (this hub is hub-1)`)
	f.expect(ActionWait, "until 2026-01-01T13:00:00Z, then given up (set spec.deletionPolicy to Orphan")

	f.clock = f.clock.Add(longestCleanup)
	f.expect(ActionWait, "until 2026-01-01T13:02:00Z") // it was not looked at meanwhile

	f.clock = f.clock.Add(shortestCleanup)
	f.expect(ActionLetGo, "for 1h0m0s the clean-up did not succeed: OmniCluster")

	f = newCleanupFixture(t, restored)
	f.requester.Unrecorded = true
	f.expect(ActionLetGo, "another hub, hub-2")

	restored.Status.HubID = "hub-1"
	newCleanupFixture(t, restored).expect(ActionCleanUp, "")
}

// TestCleanupInAClusterThatWasTakenBack: what the OmniCluster has seen counts, not what the object knows of before. One that was made
// anew, and has not seen the cluster, says nothing of it.
func TestCleanupInAClusterThatWasTakenBack(t *testing.T) {
	anew := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	seen := anew.DeepCopy()
	seen.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionConnectionReady, Status: metav1.ConditionTrue}}

	f := newCleanupFixture(t, seen)
	f.requester.OtherHub = "hub-2"
	f.expect(ActionCleanUp, "")

	f = newCleanupFixture(t, anew)
	f.requester.OtherHub = "hub-2"
	f.expect(ActionLetGo, "another hub in Omni, hub-2")
}

// TestCleanupWhileTheParentIsDeleted: the deletion of an OmniCluster only ends its cluster once Omni destroys it. Until
// then, and if that never happens, the cluster lives on and what was made there has to be removed.
func TestCleanupWhileTheParentIsDeleted(t *testing.T) {
	destroying := &v1alpha1.OmniClusterRemoteStatus{Phase: v1alpha1.ClusterPhaseDestroying}
	running := &v1alpha1.OmniClusterRemoteStatus{Phase: "Running"}

	for name, test := range map[string]struct {
		policy v1alpha1.ChangePolicy
		orphan bool
		stays  bool // the OmniCluster
		remote *v1alpha1.OmniClusterRemoteStatus
		gone   bool // the cluster with it
	}{
		"just begun":               {remote: running},
		"blocked, such as locked":  {remote: running},
		"not ours in Omni":         {},
		"observed":                 {policy: v1alpha1.ChangePolicyObserve, remote: running},
		"orphaned":                 {orphan: true, remote: running},
		"orphaned too late":        {orphan: true, remote: destroying, gone: true},
		"being torn down":          {remote: destroying, gone: true},
		"torn down by others only": {stays: true, remote: destroying},
	} {
		t.Run(name, func(t *testing.T) {
			parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", Finalizers: []string{v1alpha1.Finalizer}}}
			parent.Spec.ChangePolicy, parent.Spec.DeletePolicy.Orphan, parent.Status.Omni = test.policy, test.orphan, test.remote

			if !test.stays {
				parent.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}

			l := newCleanupFixture(t, parent)
			answers, silent, says := ActionCleanUp, ActionWait, "until 2026-01-01T13:00:00Z"

			if test.gone {
				answers, silent, says = ActionLetGo, ActionLetGo, "destroyed with its OmniCluster"
				l.expect(answers, says)
			} else {
				l.expect(answers, "")
			}

			l.clock = l.clock.Add(goodFor)
			l.code.Store(http.StatusServiceUnavailable)
			l.expect(silent, says)
		})
	}
}

// TestCleanupOfWhatIsNotRecorded: the object goes at once, and it is known whether something may be left behind: not with a
// cluster that is destroyed, and hardly without a Secret, which is held while it is in use.
func TestCleanupOfWhatIsNotRecorded(t *testing.T) {
	parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	export := &v1alpha1.OmniKubeconfigExport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "export"}}
	export.Spec.TargetSecretRef.Name = "access"

	destroyed := parent.DeepCopy()
	destroyed.DeletionTimestamp, destroyed.Finalizers = new(metav1.Now()), []string{v1alpha1.Finalizer}
	destroyed.Status.Omni = &v1alpha1.OmniClusterRemoteStatus{Phase: v1alpha1.ClusterPhaseDestroying}

	for name, test := range map[string]struct {
		parent  *v1alpha1.OmniCluster
		lose    func(*cleanupFixture, *corev1.Secret) error
		nothing bool
	}{
		"it does not answer": {parent, func(l *cleanupFixture, _ *corev1.Secret) error {
			l.code.Store(http.StatusBadGateway)
			return nil
		}, false},
		"it refuses the kubeconfig": {parent, func(l *cleanupFixture, _ *corev1.Secret) error {
			l.code.Store(http.StatusUnauthorized)
			return nil
		}, false},
		"the Secret is emptied": {parent, func(l *cleanupFixture, secret *corev1.Secret) error {
			secret.Data = nil
			return l.access.Client.Update(l.Context(), secret)
		}, false},
		"no Secret": {parent, func(l *cleanupFixture, secret *corev1.Secret) error {
			return l.access.Client.Delete(l.Context(), secret)
		}, true},
		"it is destroyed": {destroyed, func(*cleanupFixture, *corev1.Secret) error { return nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newCleanupFixture(t, test.parent, export)
			l.requester.Unrecorded = true

			secret := &corev1.Secret{}
			if err := l.access.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "access"}, secret); err != nil {
				t.Fatal(err)
			}

			if err := test.lose(l, secret); err != nil {
				t.Fatal(err)
			}

			cleanup, _, err := l.plan()
			if err != nil || cleanup.Action != ActionLetGo || cleanup.Why == "" || cleanup.NothingLeft != test.nothing {
				t.Errorf("%+v, %v", cleanup, err)
			}
		})
	}
}
