package apiserver_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
)

// warned counts the warnings that a client gets.
type warned int

// HandleWarningHeader implements rest.WarningHandler.
func (w *warned) HandleWarningHeader(int, string, string) { *w++ }

// Where no controller serves, each request that a controller would have to follow is answered with a warning, and no other.
func TestNamespacesWithoutController(t *testing.T) {
	server := startServer(t, withConfig(func(config *apiserver.Config) {
		plugin := plugin.NewControllerNamespaces()
		plugin.SetControllerNamespaces([]string{"served"})
		config.Generic.AdmissionControl = admission.NewChainHandler(plugin)
	}))

	var heard warned

	client, err := versioned.NewForConfig(&rest.Config{Host: server.url, QPS: -1, WarningHandler: &heard})
	if err != nil {
		t.Fatal(err)
	}

	machines := client.OmniV1alpha1().OmniMachines("default")

	wants := func(what string, want warned, err error) {
		t.Helper()

		if err != nil || heard != want {
			t.Errorf("%s: %d warnings, want %d: %v", what, heard, want, err)
		}

		heard = 0
	}
	change := func(text string, subresources ...string) error {
		changed, err := machines.Patch(t.Context(), "m", types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
		if err != nil || len(changed.Finalizers) == 0 {
			return err
		}

		// A change is tried on what the cache of watches has, first. A warning of that stays when it has to be tried again.
		_, err = machines.Get(t.Context(), "m", metav1.GetOptions{ResourceVersion: changed.ResourceVersion})

		return err
	}

	machine := &v1alpha1.OmniMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", Finalizers: []string{v1alpha1.Finalizer}}}
	machine.Spec.ClusterRef.Name, machine.Spec.MachineID = "c", "1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1a01"

	_, err = machines.Create(t.Context(), machine, metav1.CreateOptions{})
	wants("creation", 1, err)
	wants("another spec", 1, change(`{"spec":{"locked":true}}`))
	wants("the same spec", 0, change(`{"spec":{"locked":true}}`))
	wants("a label", 0, change(`{"metadata":{"labels":{"a":"b"}}}`))
	wants("the status", 0, change(`{"status":{"observedGeneration":1}}`, "status"))
	wants("deletion, which also says what goes", 2, machines.Delete(t.Context(), "m", metav1.DeleteOptions{}))
	wants("the end of its finalizer", 0, change(`{"metadata":{"finalizers":null}}`))
}
