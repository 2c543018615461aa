package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const keepFinalizer = "example.com/keep"

var removeFinalizers = []byte(`{"metadata":{"finalizers":null}}`)

// Names are generated, collections are deleted by selectors, and finalizers hold what is being deleted.
func TestEveryKindIsNamedAndDeleted(t *testing.T) {
	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		client := k.admin(t, namespace)

		for range 3 {
			object := k.labelled(t, "", "go", "yes")
			object.SetGenerateName("made-")

			name := must(client.Create(t.Context(), object, metav1.CreateOptions{}))(t).GetName()
			if !strings.HasPrefix(name, "made-") || len(name) != len("made-")+5 {
				t.Errorf("name %q", name)
			}
		}

		must(client.Create(t.Context(), k.labelled(t, "stays", "go", "no"), metav1.CreateOptions{}))(t)

		held := k.labelled(t, "held", "go", "yes")
		held.SetFinalizers([]string{keepFinalizer})
		must(client.Create(t.Context(), held, metav1.CreateOptions{}))(t)

		if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "go=yes"}); err != nil {
			t.Fatal(err)
		}

		waitNames(t, client, "held", "stays")

		// It is being deleted: one new generation, and no way back.
		object := must(client.Get(t.Context(), "held", metav1.GetOptions{}))(t)
		if object.GetDeletionTimestamp() == nil || object.GetGeneration() != 2 {
			t.Errorf("held: %v", object.Object["metadata"])
		}

		if _, err := client.Patch(t.Context(), "held", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":["example.com/keep","example.com/more"]}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("a finalizer more: %v", err)
		}

		must(client.Patch(t.Context(), "held", types.MergePatchType, removeFinalizers, metav1.PatchOptions{}))(t)
		waitNames(t, client, "stays")

		if err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=stays"}); err != nil {
			t.Fatal(err)
		}

		waitNames(t, client)
	})
}

// waitNames waits until the objects that are left have these names; the controller's finalizers take a
// moment to go.
func waitNames(t *testing.T, client dynamic.ResourceInterface, want ...string) {
	t.Helper()

	(&space{t: t}).wait("the others to go", func() error {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}

		if got := namesOf(list); !cmp.Equal(got, want) {
			return fmt.Errorf("left: %q, want %q", got, want)
		}

		return nil
	})
}

// waitSuffixGone waits until no name ends like this.
func waitSuffixGone(t *testing.T, client dynamic.ResourceInterface, suffix string) {
	t.Helper()

	(&space{t: t}).wait("those of "+suffix+" to go", func() error {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}

		if left := namesOf(list); slices.ContainsFunc(left, func(name string) bool { return strings.HasSuffix(name, suffix) }) {
			return fmt.Errorf("left: %q", left)
		}

		return nil
	})
}

// A deletion that is only tried says what it would destroy.
func TestEveryKindWarnsOfItsDeletion(t *testing.T) {
	does := map[string]string{
		"OmniCluster": "destroys cluster", "OmniWorkers": "destroys worker set", "OmniMachine": "takes the settings", "OmniKubeconfigExport": "deletes Secret",
		"OmniSecretSync": "deletes the copy", "OmniHelmRelease": "uninstalls release", "OmniConnection": "", "OmniControlPlane": "", "OmniRolloutPolicy": "",
	}

	forEachKind(t, func(t *testing.T, k subject, namespace string) {
		var heard warnings

		config := stack.RESTConfig()
		config.WarningHandler = &heard
		client := dynamicFor(t, config).Resource(k.gvr()).Namespace(namespace)

		must(client.Create(t.Context(), k.object(t, "x"), metav1.CreateOptions{}))(t)

		heard = nil
		if err := client.Delete(t.Context(), "x", metav1.DeleteOptions{DryRun: dryRun}); err != nil {
			t.Fatal(err)
		}

		text, want := strings.Join(heard, "\n"), fmt.Sprintf("deleting %s %q %s", k.kind, "x", does[k.kind])
		if does[k.kind] == "" && text != "" || does[k.kind] != "" && !strings.Contains(text, want) {
			t.Errorf("heard %q, want %q", text, want)
		}
	})
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
}

func ownedBy(object, owner *unstructured.Unstructured) *unstructured.Unstructured {
	yes := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &yes,
	}})

	return object
}

// confirmed is an object with the annotation that confirms its deletion.
func confirmed(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetAnnotations(map[string]string{v1alpha1.AnnotationConfirmDeletion: object.GetName()})

	return object
}

// policies are the three ways to delete an owner.
var policies = []metav1.DeletionPropagation{
	metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground,
}

// The hub's garbage collector treats our kinds as its own, as owners and as owned, once a deletion is confirmed. What is deleted
// in the foreground, as Argo CD does it, needs no confirmation: a user asked for it.
func TestEveryKindCascades(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	hub := dynamicFor(t, stack.RESTConfig()).Resource(configMaps).Namespace(s.name)

	// One object of the hub for each policy owns one of each kind, and one of each kind owns one of the hub's.
	type deletion struct {
		client dynamic.ResourceInterface
		name   string
		policy metav1.DeletionPropagation
	}

	var deletions []deletion

	for _, policy := range policies {
		name := strings.ToLower(string(policy))
		owner := must(hub.Create(t.Context(), configMap(name), metav1.CreateOptions{}))(t)
		deletions = append(deletions, deletion{hub, name, policy})

		for _, k := range subjects {
			ours := k.admin(t, s.name)
			must(ours.Create(t.Context(), ownedBy(confirmed(k.object(t, "owned-"+name)), owner), metav1.CreateOptions{}))(t)

			if policy == metav1.DeletePropagationBackground {
				must(ours.Create(t.Context(), ownedBy(k.object(t, "unconfirmed"), owner), metav1.CreateOptions{}))(t)
			}

			made := k.object(t, "owner-"+name)
			if policy == metav1.DeletePropagationOrphan {
				made = confirmed(made) // the policy keeps nothing remote
			}

			parent := must(ours.Create(t.Context(), made, metav1.CreateOptions{}))(t)
			must(hub.Create(t.Context(), ownedBy(configMap(k.resource+"-"+name), parent), metav1.CreateOptions{}))(t)
			deletions = append(deletions, deletion{ours, "owner-" + name, policy})
		}
	}

	// An owner's orphans are those that the garbage collector has been told of. What was made last goes first: when
	// it is gone, the collector knows everything that was made before.
	slices.Reverse(deletions)

	for i, d := range deletions {
		if i == len(subjects)+1 {
			waitSuffixGone(t, hub, "background")

			for _, k := range subjects {
				waitSuffixGone(t, k.admin(t, s.name), "background")
			}
		}

		if err := d.client.Delete(t.Context(), d.name, metav1.DeleteOptions{PropagationPolicy: &d.policy}); err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
	}

	want := []string{"kube-root-ca.crt"}

	for _, k := range subjects {
		waitNames(t, k.admin(t, s.name), "owned-orphan", "unconfirmed")
		s.garbageCollectorRefused(k.resource, "unconfirmed")

		if kept := must(k.admin(t, s.name).Get(t.Context(), "unconfirmed", metav1.GetOptions{}))(t); kept.GetDeletionTimestamp() != nil {
			t.Errorf("%s: the garbage collector deletes what nobody confirmed", k.kind)
		}

		want = append(want, k.resource+"-orphan")
	}

	slices.Sort(want)
	waitNames(t, hub, want...)

	for _, k := range subjects {
		orphans := map[string]*unstructured.Unstructured{
			k.kind:               must(k.admin(t, s.name).Get(t.Context(), "owned-orphan", metav1.GetOptions{}))(t),
			k.kind + "'s orphan": must(hub.Get(t.Context(), k.resource+"-orphan", metav1.GetOptions{}))(t),
		}
		for name, orphan := range orphans {
			if owners := orphan.GetOwnerReferences(); len(owners) != 0 || orphan.GetDeletionTimestamp() != nil {
				t.Errorf("%s: owners %v", name, owners)
			}
		}
	}
}

// A namespace with an object of every kind goes when their finalizers do, and says until then what holds
// it.
func TestNamespaceWithEveryKindIsDeleted(t *testing.T) {
	t.Parallel()

	s := newSpace(t)

	for _, k := range subjects {
		held := k.object(t, "held")
		held.SetFinalizers([]string{keepFinalizer})
		must(k.admin(t, s.name).Create(t.Context(), held, metav1.CreateOptions{}))(t)
		must(k.admin(t, s.name).Create(t.Context(), k.object(t, "free"), metav1.CreateOptions{}))(t)
	}

	namespaces := stack.Client().CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	s.wait("the namespace to say what holds it", func() error {
		namespace, err := namespaces.Get(t.Context(), s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		said := map[corev1.NamespaceConditionType]string{}
		for _, condition := range namespace.Status.Conditions {
			said[condition.Type] = string(condition.Status) + " " + condition.Message
		}

		for _, none := range []corev1.NamespaceConditionType{corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionContentFailure} {
			if !strings.HasPrefix(said[none], "False") {
				return fmt.Errorf("%s: %s", none, said[none])
			}
		}

		if want := fmt.Sprintf("%s in %d resource instances", keepFinalizer, len(subjects)); !strings.Contains(said[corev1.NamespaceFinalizersRemaining], want) {
			return fmt.Errorf("no %q in %v", want, said)
		}

		return nil
	})

	for _, k := range subjects {
		must(k.admin(t, s.name).Patch(t.Context(), "held", types.MergePatchType, removeFinalizers, metav1.PatchOptions{}))(t)
	}

	s.wait("the namespace to go", func() error {
		namespace, err := namespaces.Get(t.Context(), s.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}

		return fmt.Errorf("%+v %w", namespace.Status.Conditions, err)
	})
}
