package apiserver_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

// The example keeps teams that share an Omni from taking over each other's clusters, evaluated by this server's own plugin.
func TestTakingOverIsProtected(t *testing.T) {
	right := &oneRight{verb: "adopt", resource: "omniclusters", namespace: "team-a"}
	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.Generic.AdmissionControl = admission.NewChainHandler(policyPlugin(t, right, "shared-omni.yaml", "team-a", "other"))
	}))

	for _, namespace := range []string{"team-a", "other"} {
		if err := createToTakeOver(t, s, namespace, "plain", false, ""); err != nil {
			t.Fatal(err)
		}

		for name, err := range map[string]error{
			"a cluster that adopts":            createToTakeOver(t, s, namespace, "adopts", true, ""),
			"a connection with a previous hub": createToTakeOver(t, s, namespace, "moved", false, "hub-1"),
			"a cluster that begins to adopt":   patchPlain(t, s, namespace, "omniclusters", `{"spec":{"adopt":true}}`),
			"a connection that begins to":      patchPlain(t, s, namespace, "omniconnections", `{"metadata":{"annotations":{"omni.texashpc.com/previous-hub":"hub-1"}}}`),
		} {
			refused := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "it needs the verb adopt on omniclusters")
			if refused != (namespace == "team-a") || !refused && err != nil {
				t.Errorf("%s in %s: %v", name, namespace, err)
			}
		}

		for name, err := range map[string]error{
			"another change of a cluster":     patchPlain(t, s, namespace, "omniclusters", `{"spec":{"suspend":true,"adopt":false}}`),
			"another change of a connection":  patchPlain(t, s, namespace, "omniconnections", `{"metadata":{"annotations":{"a":"b"}}}`),
			"an annotation that names no hub": patchPlain(t, s, namespace, "omniconnections", `{"metadata":{"annotations":{"omni.texashpc.com/previous-hub":""}}}`),
		} {
			if err != nil {
				t.Errorf("%s in %s: %v", name, namespace, err)
			}
		}
	}

	right.Store(true)

	if err := createToTakeOver(t, s, "team-a", "allowed", true, "hub-1"); err != nil {
		t.Errorf("with the right: %v", err)
	}

	right.Store(false)

	// What is there already is not asked about.
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if _, err := s.client.OmniV1alpha1().OmniClusters("team-a").Patch(t.Context(), "allowed", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("a change of what adopts already: %v", err)
	}
}

// createToTakeOver makes a cluster and a connection of a name.
func createToTakeOver(t *testing.T, s *server, namespace, name string, adopt bool, previousHub string) error {
	t.Helper()

	cluster := &v1alpha1.OmniCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.ConnectionRef.Name, cluster.Spec.Kubernetes.Version, cluster.Spec.Talos.Version = "main", "v1.34.1", "v1.11.2"
	cluster.Spec.Adopt = adopt

	if _, err := s.client.OmniV1alpha1().OmniClusters(namespace).Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		return err
	}

	connection := &v1alpha1.OmniConnection{ObjectMeta: metav1.ObjectMeta{Name: name}}
	connection.Spec.Endpoint, connection.Spec.Auth.ServiceAccountSecretRef.Name = "https://omni.example.com", "key"

	if previousHub != "" {
		connection.Annotations = map[string]string{v1alpha1.AnnotationPreviousHub: previousHub}
	}

	_, err := s.client.OmniV1alpha1().OmniConnections(namespace).Create(t.Context(), connection, metav1.CreateOptions{})

	return err
}

// patchPlain tries a change of the cluster or the connection that takes over nothing.
func patchPlain(t *testing.T, s *server, namespace, resource, text string) error {
	t.Helper()

	options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}

	var err error
	if resource == "omniclusters" {
		_, err = s.client.OmniV1alpha1().OmniClusters(namespace).Patch(t.Context(), "plain", types.MergePatchType, []byte(text), options)
	} else {
		_, err = s.client.OmniV1alpha1().OmniConnections(namespace).Patch(t.Context(), "plain", types.MergePatchType, []byte(text), options)
	}

	return err
}
