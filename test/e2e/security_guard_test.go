package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// The guard of spec.deletePolicy.requireConfirmation has no way around it but the annotation and the field itself.
func TestDeletionGuardHasNoWayAround(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	editor := s.user("edit")
	bind(t, s.name, "edit", subjectUser(editor))
	s.run("create", "configmap", "owner")
	s.apply(clusterManifest("guarded", "  suspend: true", "  deletePolicy: {requireConfirmation: true}"))

	client := dynamicFor(t, must(stack.RESTConfigFor(editor))(t)).Resource(subjects[1].gvr()).Namespace(s.name)
	s.wait("the right to edit", func() error {
		_, err := client.Patch(t.Context(), "guarded", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})

		return err
	})

	// What an editor may change does not help.
	owner := must(dynamicFor(t, stack.RESTConfig()).Resource(configMaps).Namespace(s.name).Get(t.Context(), "owner", metav1.GetOptions{}))(t)
	prepared := fmt.Sprintf(`{"metadata":{"finalizers":null,
		"annotations":{"omni.texashpc.com/confirm-deletion":"another"},
		"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`, owner.GetUID())

	if _, err := client.Patch(t.Context(), "guarded", types.MergePatchType, []byte(prepared), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	past := []byte(`{"metadata":{"finalizers":null,"deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":0}}`)
	if _, err := client.Patch(t.Context(), "guarded", types.MergePatchType, past, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a deletion that an editor writes: %v", err)
	}

	zero, yes := int64(0), true
	background, foreground, orphan := metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan

	for name, options := range map[string]metav1.DeleteOptions{
		"at once": {GracePeriodSeconds: &zero}, "in the background": {PropagationPolicy: &background}, "in the foreground": {PropagationPolicy: &foreground},
		"orphaning": {PropagationPolicy: &orphan}, "tried": {DryRun: dryRun},
		"of this very object": {Preconditions: metav1.NewUIDPreconditions(string(must(client.Get(t.Context(), "guarded", metav1.GetOptions{}))(t).GetUID()))},
	} {
		if err := client.Delete(t.Context(), "guarded", options); err == nil || !strings.Contains(err.Error(), "confirm-deletion=guarded") {
			t.Errorf("delete %s: %v", name, err)
		}

		if err := client.DeleteCollection(t.Context(), options, metav1.ListOptions{FieldSelector: "metadata.name=guarded"}); name != "of this very object" &&
			(err == nil || !strings.Contains(err.Error(), "confirm-deletion=guarded")) {
			t.Errorf("delete the collection %s: %v", name, err)
		}
	}

	// The deletion of what cannot be read is for administrators, and only for that.
	unread := metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &yes}
	if err := client.Delete(t.Context(), "guarded", unread); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "confirm-deletion") {
		t.Errorf("unread, by an editor: %v", err)
	}

	if err := subjects[1].admin(t, s.name).Delete(t.Context(), "guarded", unread); err == nil {
		t.Error("unread, by an administrator: deleted")
	}

	// The garbage collector is refused, too.
	s.run("delete", "configmap", "owner")
	s.garbageCollectorRefused("omniclusters", "guarded")

	left := must(client.Get(t.Context(), "guarded", metav1.GetOptions{}))(t)
	if left.GetDeletionTimestamp() != nil {
		t.Errorf("is being deleted: %v", left.Object["metadata"])
	}

	s.run("annotate", "ocl", "guarded", "--overwrite", "omni.texashpc.com/confirm-deletion=guarded")
	s.waitGone("ocl", "guarded") // by the garbage collector, which tries again
}

// The deletion of a namespace stops at a guarded cluster, says so, and takes no machine from it.
func TestDeletionGuardHoldsTheNamespace(t *testing.T) {
	t.Parallel()

	f := newFleet(t)
	f.cluster("guarded", "  deletePolicy: {requireConfirmation: true}")
	machines := f.view("guarded").Machines

	namespaces := stack.Client().CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), f.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	f.wait("the namespace to say what holds it", func() error {
		namespace, err := namespaces.Get(t.Context(), f.name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		for _, condition := range namespace.Status.Conditions {
			if condition.Type == corev1.NamespaceDeletionContentFailure && strings.Contains(condition.Message, "confirm-deletion=guarded") {
				return nil
			}
		}

		return fmt.Errorf("%+v", namespace.Status.Conditions)
	})

	f.waitGone("ow", "guarded-w")
	time.Sleep(settleTime + 2*time.Second)
	f.wantDestroyed()

	if diff := cmp.Diff(machines, f.view("guarded").Machines); diff != "" {
		t.Errorf("machines in Omni (-want +got):\n%s", diff)
	}

	if cluster := get[v1alpha1.OmniCluster](f.space, "ocl", "guarded"); cluster.DeletionTimestamp != nil {
		t.Error("is being deleted")
	}
}

func subjectUser(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

// Who may write one subresource writes that alone: not labels, finalizers, owners or the other half of the object.
func TestRightsOnASubresourceEndThere(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	k := subjects[3] // OmniWorkers, which has both
	object := k.labelled(t, "x", "kept", "yes")
	object.SetFinalizers([]string{keepFinalizer})
	must(k.admin(t, s.name).Create(t.Context(), object, metav1.CreateOptions{}))(t)

	const hijack = `"labels":{"kept":"no"},"annotations":{"a":"b"},"finalizers":[],"deletionTimestamp":"2020-01-01T00:00:00Z",` +
		`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"u"}]`

	for _, tc := range []struct{ subresource, value string }{
		{"scale", `"spec":{"replicas":4,"clusterRef":{"name":"hijacked"}},"status":{"replicas":9}`},
		{"status", `"spec":{"machineClass":{"name":"hijacked"}},"status":{"replicas":7}`},
	} {
		user := s.user(tc.subresource)
		s.grant(user, k.resource+"/"+tc.subresource, "patch", "update")

		client := must(rest.HTTPClientFor(must(stack.RESTConfigFor(user))(t)))(t)
		path := s.path(k.resource) + "/x"
		current, identity := k.current(t, s.name, map[bool]string{true: "scale"}[tc.subresource == "scale"])
		applied := strings.Replace(identity, `"metadata":{"name":"x"`, `"metadata":{`+strings.ReplaceAll(hijack, `"finalizers":[],`, `"finalizers":["example.com/mine"],`)+`,"name":"x"`, 1)

		s.wait("the right to patch "+tc.subresource, func() error {
			status, text := s.send(client, asked{http.MethodPatch, path + "/" + tc.subresource, "application/merge-patch+json", "{}"})

			return expectStatus(status, http.StatusOK, text)
		})

		for _, write := range []asked{
			{http.MethodPatch, path + "/" + tc.subresource, "application/merge-patch+json", `{"metadata":{` + hijack + `},` + tc.value + `}`},
			{http.MethodPatch, path + "/" + tc.subresource, "application/json-patch+json", `[{"op":"add","path":"/metadata/finalizers","value":[]},{"op":"add","path":"/metadata/labels","value":{"kept":"no"}}]`},
			{http.MethodPatch, path + "/" + tc.subresource + "?fieldManager=mine&force=true", "application/apply-patch+yaml", applied},
			{http.MethodPut, path + "/" + tc.subresource, "application/json", strings.ReplaceAll(current, keepFinalizer, "example.com/mine")},
		} {
			if status, text := s.send(client, write); status != http.StatusOK && status != http.StatusConflict && status != http.StatusUnprocessableEntity {
				t.Errorf("%s %s: status %d: %s", tc.subresource, write.contentType, status, text)
			}

			s.checkKept(k, tc.subresource+" "+write.contentType)
		}

		for _, other := range []asked{
			{http.MethodPatch, path, "application/merge-patch+json", "{}"},
			{http.MethodGet, path, "", ""},
			{http.MethodDelete, path, "", ""},
			{http.MethodPatch, path + "/" + map[string]string{"scale": "status", "status": "scale"}[tc.subresource], "application/merge-patch+json", "{}"},
		} {
			if status, text := s.send(client, other); status != http.StatusForbidden {
				t.Errorf("%s: %s %s: status %d: %s", tc.subresource, other.method, other.path, status, text)
			}
		}
	}

	must(k.admin(t, s.name).Patch(t.Context(), "x", types.MergePatchType, removeFinalizers, metav1.PatchOptions{}))(t)
}

// checkKept looks at what nobody but an editor may change.
func (s *space) checkKept(k subject, after string) {
	s.t.Helper()

	object := must(k.admin(s.t, s.name).Get(s.t.Context(), "x", metav1.GetOptions{}))(s.t)
	cluster, _, _ := unstructured.NestedString(object.Object, "spec", "clusterRef", "name")
	class, _, _ := unstructured.NestedString(object.Object, "spec", "machineClass", "name")
	finalizers := slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == v1alpha1.Finalizer })

	if cluster != "absent" || class != "m" || object.GetDeletionTimestamp() != nil || len(object.GetOwnerReferences()) != 0 || len(object.GetAnnotations()) != 0 ||
		!cmp.Equal(object.GetLabels(), map[string]string{"kept": "yes"}) || !cmp.Equal(finalizers, []string{keepFinalizer}) {
		s.t.Errorf("after %s: %v %v", after, object.Object["metadata"], object.Object["spec"])
	}
}

// grant gives a user verbs on one resource of our group in the namespace, and nothing else.
func (s *space) grant(user, resource string, verbs ...string) {
	s.t.Helper()

	name := strings.ReplaceAll(resource, "/", "-")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"omni.texashpc.com"}, Resources: []string{resource}, Verbs: verbs,
	}}}
	must(stack.Client().RbacV1().Roles(s.name).Create(s.t.Context(), role, metav1.CreateOptions{}))(s.t)
	bindRole(s.t, s.name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, subjectUser(user))
}
