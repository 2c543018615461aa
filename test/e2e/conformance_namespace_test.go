package e2e

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nothing is made in a namespace that is not there, or that is going: it would hold the deletion up for ever.
func TestEveryKindNeedsItsNamespace(t *testing.T) {
	t.Parallel()

	s := newSpace(t)

	held := subjects[0].object(t, "held")
	held.SetFinalizers([]string{keepFinalizer})
	must(subjects[0].admin(t, s.name).Create(t.Context(), held, metav1.CreateOptions{}))(t)

	if err := stack.Client().CoreV1().Namespaces().Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	for _, k := range subjects {
		// The server hears of the deletion a moment later than the hub says so.
		s.wait(k.kind+" to be refused", func() error {
			_, err := k.admin(t, s.name).Create(t.Context(), k.object(t, "late"), metav1.CreateOptions{DryRun: dryRun})
			if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return refusedWith(err, "because it is being terminated, as a cause that clients know")
			}

			return nil
		})

		_, err := k.admin(t, "nowhere").Create(t.Context(), k.object(t, "x"), metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "nowhere" not found`) {
			t.Errorf("%s in no namespace: %v", k.kind, err)
		}
	}

	// What is there can still be changed: finalizers have to go.
	must(subjects[0].admin(t, s.name).Patch(t.Context(), "held", types.MergePatchType, removeFinalizers, metav1.PatchOptions{}))(t)
}

// Priority and fairness is on: every answer names the flow schema and the priority level of the request.
func TestRequestsHavePriorities(t *testing.T) {
	t.Parallel()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, stack.OmniAPIServer.URL()+"/apis/omni.texashpc.com/v1alpha1", nil)
	if err != nil {
		t.Fatal(err)
	}

	answer, err := clientOf(certificateOf(t, "somebody")).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()

	for _, header := range []string{"X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"} {
		if answer.StatusCode != http.StatusOK || len(answer.Header.Get(header)) != 36 {
			t.Errorf("status %d, %s: %q", answer.StatusCode, header, answer.Header.Get(header))
		}
	}
}
