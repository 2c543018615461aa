package clusteraccess

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
)

// TestWhoNamesThePreviousHub: the OmniConnection names a previous hub for everything that is reached through it; a
// Secret does so only where no other object does.
func TestWhoNamesThePreviousHub(t *testing.T) {
	for name, test := range map[string]struct {
		connection string // what the OmniConnection names; "-": there is none
		secret     string // what the kubeconfig's Secret names
		exported   bool
		noParent   bool // when the object is being deleted
		previous   string
		names      string
	}{
		"nobody":                              {previous: "", names: `OmniConnection "omni"`},
		"the connection":                      {connection: "gone", previous: "gone", names: `OmniConnection "omni"`},
		"the connection before the Secret":    {connection: "gone", secret: "else", previous: "gone", names: `OmniConnection "omni"`},
		"the Secret of a kubeconfig by hand":  {secret: "gone", previous: "gone", names: `OmniConnection "omni"`},
		"an exported Secret does not":         {secret: "gone", exported: true, names: `OmniConnection "omni"`},
		"the Secret, there is no connection":  {connection: "-", secret: "gone", previous: "gone", names: `OmniConnection "omni"`},
		"the Secret, the OmniCluster is gone": {secret: "gone", exported: true, noParent: true, previous: "gone", names: `Secret "access"`},
		"this hub itself":                     {connection: "here", names: `OmniConnection "omni"`},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32

			access, release := visit{system: "u-1", noParent: test.noParent}.come(t, &requests)
			access.HubID = "here"

			arrange := func(object client.Object, change func()) {
				t.Helper()

				if err := access.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}

				change()

				if err := access.Client.Update(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}

			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "access"}}
			arrange(secret, func() {
				if test.secret != "" {
					secret.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: test.secret}
				}

				if test.exported {
					secret.Labels = map[string]string{v1alpha1.LabelExportUID: "export"}
				}
			})

			if !test.noParent {
				parent := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
				arrange(parent, func() { parent.Spec.ConnectionRef.Name = "omni" })
			}

			if test.connection != "-" {
				connection := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "omni"}}
				if test.connection != "" {
					connection.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: test.connection}
				}

				if err := access.Client.Create(t.Context(), connection); err != nil {
					t.Fatal(err)
				}
			}

			release.DeletionTimestamp = &metav1.Time{Time: time.Now()}

			opened := planWhenAnswered(t, access, release)
			if want := (hubs.Hubs{Own: "here", Previous: test.previous}); opened.Hubs != want || opened.Names != test.names {
				t.Errorf("a deletion: %+v, named by %s; want %+v, %s", opened.Hubs, opened.Names, want, test.names)
			}

			if test.noParent {
				return
			}

			release.DeletionTimestamp = nil

			opened, _, err := access.Open(t.Context(), RequesterOf(release, nil))
			if err != nil || opened == nil {
				t.Fatal(opened, err)
			}

			if want := (hubs.Hubs{Own: "here", Previous: test.previous}); opened.Hubs != want || opened.Names != test.names {
				t.Errorf("%+v, named by %s; want %+v, %s", opened.Hubs, opened.Names, want, test.names)
			}
		})
	}
}

// planWhenAnswered repeats PlanCleanup until the cluster has answered.
func planWhenAnswered(t *testing.T, access *Access, release *v1alpha1.OmniHelmRelease) *Opened {
	t.Helper()

	for {
		cleanup, outcome, err := access.PlanCleanup(t.Context(), RequesterOf(release, nil), time.Now())
		if err != nil {
			t.Fatal(err)
		}

		if cleanup.Opened != nil {
			return cleanup.Opened
		}

		if !outcome.Blocks() && !outcome.Postpones() {
			t.Fatalf("%d %s", cleanup.Action, outcome.Message())
		}

		time.Sleep(time.Millisecond)
	}
}
