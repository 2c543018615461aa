package env

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testDeployment checks the rights that the deployment gives, by asking the real authoriser, and what a hub says about an API
// server that is not there. The controller manager is needed: it fills the roles view, edit and admin.
func testDeployment(t *testing.T, hub *Hub) {
	if err := hub.prepareOmniAPIServer(t.Context(), 20000); err != nil {
		t.Fatal(err)
	}

	if err := errors.Join(hub.grantController(t.Context(), "default"), hub.grantController(t.Context(), "default")); err != nil {
		t.Fatal(err)
	}

	for _, role := range []string{"view", "edit", "admin"} {
		if _, _, err := hub.Kubectl(t.Context(), "create", "rolebinding", role, "--clusterrole="+role, "--user="+role, "-n", "default"); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("rights", func(t *testing.T) { testRights(t, hub) })
	t.Run("unreachable API server", func(t *testing.T) {
		err := Eventually(t.Context(), 5*time.Second, "the API", hub.apiServed)
		if err == nil || !strings.Contains(err.Error(), "the APIService is not available: FailedDiscoveryCheck") {
			t.Errorf("error %v does not say that the APIService fails", err)
		}
	})
	t.Run("registered twice", func(t *testing.T) {
		if err := hub.registerAPIService(t.Context(), 20001); err == nil {
			t.Error("a second registration was accepted")
		}
	})
}

// access is a question to the authoriser.
type access struct {
	user, verb, group, resource, subresource, name, namespace string
	allowed                                                   bool
}

func testRights(t *testing.T, hub *Hub) {
	const (
		apiServer  = "system:serviceaccount:omni-cluster-operator-system:omni-apiserver"
		controller = "system:serviceaccount:omni-cluster-operator-system:omni-controller"
		omni       = "omni.texashpc.com"
		crd        = "apiextensions.k8s.io"
		crds       = "customresourcedefinitions"
		leases     = "coordination.k8s.io"
	)

	for _, a := range []access{
		{apiServer, "create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", true},
		{apiServer, "create", "authentication.k8s.io", "tokenreviews", "", "", "", true},
		{apiServer, "get", "", "configmaps", "", "extension-apiserver-authentication", "kube-system", true},
		{apiServer, "watch", "", "namespaces", "", "", "", true},
		{apiServer, "watch", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "", "", true},
		{apiServer, "watch", "flowcontrol.apiserver.k8s.io", "flowschemas", "", "", "", true},
		{apiServer, "get", "", "secrets", "", "", "default", false},
		{apiServer, "list", "", "configmaps", "", "", "default", false},
		{apiServer, "update", "apiregistration.k8s.io", "apiservices", "", "", "", false},

		{controller, "patch", omni, "omniclusters", "", "", "default", true},
		{controller, "patch", omni, "omniclusters", "status", "", "default", true},
		{controller, "watch", "", "secrets", "", "", "default", true},
		{controller, "get", crd, crds, "", "omniclusters.omni.texashpc.com", "", true},
		{controller, "get", crd, crds, "", "others.example.com", "", false},
		{controller, "get", "", "namespaces", "", "kube-system", "kube-system", true},
		{controller, "get", "", "namespaces", "", "default", "default", true}, // the one that it serves
		{controller, "get", "", "namespaces", "", "kube-public", "kube-public", false},
		{controller, "list", "", "namespaces", "", "", "", false},
		{controller, "create", omni, "omniclusters", "", "", "default", false},
		{controller, "delete", omni, "omniclusters", "", "", "default", false},
		{controller, "get", "", "secrets", "", "", "kube-system", false},
		{controller, "get", omni, "omniclusters", "", "", "kube-system", false},
		{controller, "update", leases, "leases", "", "omni-controller", "default", true},
		{controller, "create", leases, "leases", "", "", "default", true},
		{controller, "get", leases, "leases", "", "another", "default", false},
		{controller, "update", leases, "leases", "", "omni-controller", "kube-system", false},

		{"view", "list", omni, "omniclusters", "", "", "default", true},
		{"view", "get", omni, "omniclusters", "template", "", "default", false},
		{"view", "patch", omni, "omniclusters", "", "", "default", false},
		{"edit", "delete", omni, "omniclusters", "", "", "default", true},
		{"edit", "get", omni, "omniclusters", "template", "", "default", true},
		{"edit", "patch", omni, "omniworkers", "scale", "", "default", true},
		{"edit", "patch", omni, "omniclusters", "status", "", "default", false},
		{"admin", "deletecollection", omni, "omnimachines", "", "", "default", true},
	} {
		// Aggregated roles are filled a moment after they were made.
		if err := Eventually(t.Context(), controlPlaneTimeout, fmt.Sprintf("%+v", a), func(ctx context.Context) error {
			return review(ctx, hub, a)
		}); err != nil {
			t.Error(err)
		}
	}
}

// review asks the authoriser and returns an error if it answers otherwise than expected.
func review(ctx context.Context, hub *Hub, a access) error {
	answer, err := hub.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: a.user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource, Name: a.name, Namespace: a.namespace,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}

	if answer.Status.Allowed != a.allowed {
		return fmt.Errorf("allowed: %v (%s)", answer.Status.Allowed, answer.Status.Reason)
	}

	return nil
}
