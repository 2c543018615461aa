package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// objectHazards are accidents with the objects themselves: edited, deleted, and what they need.
func objectHazards() []hazard {
	return []hazard{
		{
			name: "clusterName edited",
			when: func(f *fleet) {
				f.refusedPatch("ocl/c", `{"spec":{"clusterName":"other"}}`, "spec.clusterName")
			},
			says: []seen{ready()},
		},
		{
			name: "connectionRef edited",
			when: func(f *fleet) {
				f.refusedPatch("ocl/c", `{"spec":{"connectionRef":{"name":"other"}}}`, "spec.connectionRef.name")
			},
			says: []seen{ready()},
		},
		{
			name: "suspended then deleted",
			when: func(f *fleet) {
				f.merge(`{"spec":{"suspend":true}}`)
				f.waitCondition("ocl", "c", v1alpha1.ConditionSuspended, metav1.ConditionTrue, "")
				f.run("delete", "ocl", "c", "--timeout=60s")
			},
			destroyed: []string{"Cluster c"},
			machines:  map[string]int{},
		},
		{
			name: "namespace deleted",
			when: func(f *fleet) {
				f.run("delete", "namespace", f.name, namespaceTimeout)
			},
			destroyed: []string{"Cluster c"},
			machines:  map[string]int{},
		},
		{
			name: "connection and key deleted first",
			when: func(f *fleet) {
				force := []string{"--force", "--grace-period=0", "--cascade=foreground", "--wait=false"}
				if out, err := f.try(append([]string{"delete", "oconn/omni", "secret/key"}, force...)...); err == nil || !strings.Contains(err.Error(), `use it: "c". `) {
					f.t.Errorf("not refused: %v: %s", err, out)
				}

				f.run("annotate", "oconn", "omni", "omni.texashpc.com/confirm-deletion=omni")
				f.run(append([]string{"delete", "oconn/omni"}, force...)...)

				message := f.waitCondition("oconn", "omni", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonInUse)
				if !strings.Contains(message, `nothing is lost: the connection works on for OmniCluster "c"`) {
					f.t.Errorf("the message does not name the cluster: %s", message)
				}
			},
			says: []seen{ready()},
			then: func(f *fleet) {
				f.run("delete", "ocl", "c", "--timeout=60s")
				f.waitRemoteGone("c")
				f.waitGone("oconn", "omni")
				f.waitGone("secret", "key")
			},
			finally: []string{"Cluster c"},
		},
		{
			// As docs/how-to/stop-a-deletion.md says.
			name: "connection deleted by mistake and made again",
			when: func(f *fleet) {
				f.run("annotate", "oconn", "omni", "omni.texashpc.com/confirm-deletion=omni")
				f.run("delete", "oconn", "omni", "--wait=false")
				f.waitCondition("oconn", "omni", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonInUse)

				page, steps := f.newReader(), commandsOf(f.t, "docs/how-to/stop-a-deletion.md", 6)
				page.types(steps[3].text)
				page.types(steps[5].text)
				f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
				f.ready("c")
			},
			says: []seen{ready()},
			then: func(f *fleet) {
				f.run("delete", "ocl", "c", "--wait=false")
				f.deleted("c")
			},
			finally: []string{"Cluster c"},
		},
		{
			name: "owner reference to what is gone",
			when: ownedByWhatIsGone,
			says: []seen{ready()},
			then: func(f *fleet) {
				f.run("annotate", "ocl", "c", "omni.texashpc.com/confirm-deletion=c")
				f.waitGone("ocl", "c") // by the garbage collector, which tries again
				f.waitRemoteGone("c")
			},
			finally: []string{"Cluster c"},
		},
		{
			// Our finalizer holds the key until the cluster is gone.
			name: "key deleted after a deletion began",
			when: func(f *fleet) {
				f.omni.Pause()
				f.run("delete", "ocl", "c", "--wait=false")
				f.says("c", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting, `"c"`)
				f.run("delete", "secret", "key", "--wait=false")
				f.omni.Resume()
				f.deleted("c")
				f.waitGone("secret", "key")
			},
			destroyed: []string{"Cluster c"},
			machines:  map[string]int{},
		},
		{
			name: "key torn away then deleted",
			when: func(f *fleet) {
				f.run("patch", "secret", "key", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
				f.run("delete", "secret", "key", "--force", "--wait=false")

				// omni-controller may have put it back in between: if not, the Secret is gone by now.
				out, err := f.try("patch", "secret", "key", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
				if err != nil && !strings.Contains(err.Error(), "NotFound") {
					f.t.Fatalf("tears the finalizer away again: %v: %s", err, out)
				}

				f.waitGone("secret", "key")
				// Until the connection has noticed, a deletion is what it says.
				f.waitCondition("oconn", "omni", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
				f.run("delete", "ocl", "c", "--wait=false")
			},
			says: []seen{deletionBlocked("", `"c"`, "Restore the connection", "orphan")},
			then: func(f *fleet) {
				f.apply(secretManifest("key", f.key, f.omni.Endpoint()))
				f.deleted("c")
			},
			finally: []string{"Cluster c"},
		},
		{
			name: "connection led to another Omni",
			when: ledElsewhere,
			then: func(f *fleet) {
				f.apply(secretManifest("key", f.key, f.omni.Endpoint()), connectionManifest("omni", f.omni.Endpoint(), "key", string(f.omni.CAPEM())))
				f.deleted("c")
			},
			finally: []string{"Cluster c"},
		},
	}
}

// ownedByWhatIsGone gives cluster c an owner that does not exist: somebody who may only patch is refused, and what an editor's
// tool writes by mistake has the garbage collector refused.
func ownedByWhatIsGone(f *fleet) {
	patcher := f.user("patcher")
	f.grant(patcher, "omniclusters", "get", "patch")

	client := dynamicFor(f.t, must(stack.RESTConfigFor(patcher))(f.t)).Resource(subjects[1].gvr()).Namespace(f.name)
	patch := func(text string) error {
		_, err := client.Patch(f.t.Context(), "c", types.MergePatchType, []byte(text), metav1.PatchOptions{})

		return err
	}

	f.wait("the right to patch", func() error { return patch(`{"metadata":{"labels":{"a":"b"}}}`) })

	const owner = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"00000000-0000-4000-8000-000000000000"}]}}`

	if err := patch(owner); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot delete omniclusters") {
		f.t.Errorf("an owner, by somebody who may not delete: %v", err)
	}

	f.merge(owner)
	f.garbageCollectorRefused("omniclusters", "c")
}

// garbageCollectorRefused waits until the garbage collector was refused the deletion of an object.
func (s *space) garbageCollectorRefused(resource, name string) {
	s.t.Helper()
	s.wait("the refusal of the garbage collector for "+resource+" "+name, func() error {
		if !slices.ContainsFunc(s.auditEvents(), func(event auditv1.Event) bool {
			return event.Verb == "delete" && event.ObjectRef.Resource == resource && event.ObjectRef.Name == name && event.ResponseStatus != nil &&
				event.ResponseStatus.Code == http.StatusForbidden && strings.HasSuffix(event.User.Username, ":generic-garbage-collector")
		}) {
			return errors.New("it is not in the audit log")
		}

		return nil
	})
}

// ledElsewhere leads the connection to another Omni that has a cluster of this name, then none, and
// deletes the object: nothing there is touched or made, whatever is allowed by annotation, and the
// deletion does not end silently while the real cluster runs on.
func ledElsewhere(f *fleet) {
	other, err := omnisim.Start(omnisim.Options{Phase: phase})
	if err != nil {
		f.t.Fatal(err)
	}

	f.t.Cleanup(other.Close)

	key, err := other.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}

	if err := omnisim.CreateForeignCluster(f.t.Context(), other.State(), "c", "1.35.1", "1.13.3"); err != nil {
		f.t.Fatal(err)
	}

	f.apply(secretManifest("key", key, other.Endpoint()), connectionManifest("omni", other.Endpoint(), "key", string(other.CAPEM())))
	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonEndpointChanged, `"c"`, f.omni.Endpoint(), other.Endpoint(), "orphan")
	f.run("annotate", "ocl", "c", v1alpha1.AnnotationRecreate+"="+get[v1alpha1.OmniCluster](f.space, "ocl", "c").Status.OmniClusterID)

	// The cluster there goes, and the name is free.
	if err := other.State().TeardownAndDestroy(f.t.Context(), omni.NewCluster("c").Metadata()); err != nil && !state.IsNotFoundError(err) {
		f.t.Fatal(err) // the simulator may destroy it first
	}

	f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, "", "has no such cluster", v1alpha1.AnnotationRecreate)

	if err := omnisim.CreateForeignCluster(f.t.Context(), other.State(), "c", "1.35.1", "1.13.3"); err != nil {
		f.t.Fatal(err)
	}

	f.run("delete", "ocl", "c", "--wait=false")
	f.says("c", v1alpha1.ConditionDeletionBlocked, metav1.ConditionTrue, v1alpha1.ReasonEndpointChanged, f.omni.Endpoint(), other.Endpoint(), "orphan")

	if view, err := other.View("c"); err != nil || !view.Exists || len(other.Writes()) != 0 {
		f.t.Errorf("the other Omni's cluster was touched: %+v %v", view, err)
	}
}

// neighbour is another namespace that uses the same Omni.
func (f *fleet) neighbour() *fleet {
	f.t.Helper()

	other := &fleet{space: &space{t: f.t, name: f.name + "-2"}, omni: f.omni, key: f.key, machines: f.machines}
	other.run("create", "namespace", other.name)
	other.apply(secretManifest("key", f.key, f.omni.Endpoint()), connectionManifest("omni", f.omni.Endpoint(), "key", string(f.omni.CAPEM())))

	return other
}

// uid of an OmniCluster.
func (f *fleet) uid(name string) string {
	f.t.Helper()

	return f.run("get", "ocl", name, "-o", "jsonpath={.metadata.uid}")
}

// copyFrom applies the OmniCluster c and its children of another namespace here, as a backup tool
// or a careful user does.
func (f *fleet) copyFrom(other *fleet) {
	f.t.Helper()

	for _, object := range []string{"ocl/c", "ocp/c-cp", "ow/c-w"} {
		manifest := other.run("get", object, "-o", "json")
		for _, field := range []string{"uid", "resourceVersion"} {
			value := other.run("get", object, "-o", "jsonpath={.metadata."+field+"}")
			manifest = strings.ReplaceAll(manifest, fmt.Sprintf(`"%s": "%s"`, field, value), fmt.Sprintf(`"%s": ""`, field))
		}

		f.apply(strings.ReplaceAll(manifest, fmt.Sprintf(`"namespace": "%s"`, other.name), fmt.Sprintf(`"namespace": "%s"`, f.name)))
	}
}
