package omnicluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A provider may fail to make the machines of a class. Whoever looks finds which machine, and where the error is: it may quote
// credentials.
func TestReadyTellsThatAProviderFails(t *testing.T) {
	const failure = "c4n4ry: the datastore is full"

	f := newFixture(t, newCluster(), newWorkers("w", "made", 2))
	if err := f.omni.AddProvisionedClass("made", "vms"); err != nil {
		t.Fatal(err)
	}

	f.omni.FailProvisioning(testCluster, "w", failure)
	f.create(newControlPlane("cp", f.machines[0]))
	f.eventually("the provider's failure", func() string {
		f.run()

		said := strings.Join(shown(f.get()), "\n")
		for _, part := range []string{
			`Available=False NotRunning: `, `; machine set "w" has 0 of 2: the provider "vms" fails to provision 2; ` + "`omnictl get clustermachinerequeststatus demo-w-",
		} {
			if !strings.Contains(said, part) {
				return said
			}
		}

		return ""
	})
	f.quiet()
	f.keepsQuiet("c4n4ry")

	f.omni.FailProvisioning(testCluster, "w", "")
	f.until(v1alpha1.ConditionReady, metav1.ConditionTrue, "Running")
	f.quiet()
}
