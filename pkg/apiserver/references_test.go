package apiserver_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

// editor may do everything with our kinds, as with the role edit, and get the Secrets that start with "own-".
type editor struct{ authorizer.Authorizer }

func (editor) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if asked.GetResource() == "secrets" && !strings.HasPrefix(asked.GetName(), "own-") {
		return authorizer.DecisionNoOpinion, "", nil
	}

	return authorizer.DecisionAllow, "", nil
}

// With --check-references, a user cannot make an object use a Secret that the user may not get, whatever the verb of
// the write. Everything else goes on: other changes of objects that use the Secret, their status, their deletion.
func TestReferencesAreChecked(t *testing.T) {
	server := startServer(t, withConfig(func(config *apiserver.Config) {
		plugin := plugin.NewReferences()
		plugin.SetCheckReferences(true)
		plugin.SetAuthorizer(editor{})
		config.Generic.AdmissionControl = admission.NewChainHandler(plugin)
	}))
	syncs := server.client.OmniV1alpha1().OmniSecretSyncs("default")

	sync := func(name, source string) *v1alpha1.OmniSecretSync {
		made := &v1alpha1.OmniSecretSync{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made.Spec.ClusterRef.Name, made.Spec.KubeconfigSecretRef.Name, made.Spec.SourceSecretRef.Name = "demo", "own-kubeconfig", source
		made.Spec.TargetSecretRef = v1alpha1.NamespacedSecretReference{Namespace: "apps", Name: "copy"}
		made.Spec.DeletionPolicy = v1alpha1.DeletionOrphan

		return made
	}

	refused := func(what string, err error) {
		t.Helper()

		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `spec.sourceSecretRef: user "administrator" cannot get secrets "omni-apiserver-ca"`) {
			t.Errorf("%s: %v", what, err)
		}
	}

	allowed := func(what string, err error) {
		t.Helper()

		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	change := func(kind types.PatchType, text string, subresources ...string) error {
		options := metav1.PatchOptions{FieldManager: "test"}
		if kind == types.ApplyPatchType {
			options.Force = new(true)
		}

		_, err := syncs.Patch(t.Context(), "a", kind, []byte(text), options, subresources...)

		return err
	}

	_, err := syncs.Create(t.Context(), sync("b", "omni-apiserver-ca"), metav1.CreateOptions{})
	refused("create", err)

	_, err = syncs.Create(t.Context(), sync("a", "own-registry"), metav1.CreateOptions{})
	allowed("create", err)

	const stolen = `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniSecretSync","spec":{"sourceSecretRef":{"name":"omni-apiserver-ca"}}}`

	refused("patch", change(types.MergePatchType, stolen))
	refused("apply", change(types.ApplyPatchType, strings.Replace(stolen, `"spec"`, `"metadata":{"name":"a"},"spec"`, 1)))
	allowed("another change", change(types.MergePatchType, `{"metadata":{"labels":{"a":"b"}},"spec":{"createNamespace":true}}`))
	allowed("finalizers", change(types.MergePatchType, `{"metadata":{"finalizers":["omni.texashpc.com/finalizer"]}}`))
	allowed("status", change(types.MergePatchType, `{"status":{"observedGeneration":1}}`, "status"))
	allowed("deletion", syncs.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	allowed("finalizers at the end", change(types.MergePatchType, `{"metadata":{"finalizers":null}}`))
}
