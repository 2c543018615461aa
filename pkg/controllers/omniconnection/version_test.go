package omniconnection

import (
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/await"
)

// TestVersionOfOmni checks what is said of each version, of the oldest first: an upgrade under the running controller shows.
func TestVersionOfOmni(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)

	for _, test := range []struct {
		version, reason, message string
		want                     v1alpha1.OmniServerStatus
	}{
		{"1.8", "Supported", "was not tried", v1alpha1.OmniServerStatus{Version: "v1.8.0", APIVersion: 2, Instance: "omni"}},
		{"1.9", "Supported", "Omni v1.9.3, API 2", v1alpha1.OmniServerStatus{Version: "v1.9.3", APIVersion: 2, Instance: "omni"}},
		{"1.11", "Supported", "Omni v1.11.0, API 3", v1alpha1.OmniServerStatus{Version: "v1.11.0", APIVersion: 3, Instance: "omni"}},
		{"1.14", "Newer", "docs/reference/versions.md", v1alpha1.OmniServerStatus{Version: "v1.14.1", APIVersion: 3, Instance: "omni"}},
	} {
		if err := f.omni.Upgrade(test.version); err != nil {
			t.Fatal(err)
		}

		await.Until(t, "the version shows: "+test.version, func() bool {
			f.run()

			status := f.get().Status

			return status.Omni != nil && *status.Omni == test.want && apimeta.IsStatusConditionTrue(status.Conditions, "Ready")
		})

		condition := apimeta.FindStatusCondition(f.get().Status.Conditions, v1alpha1.ConditionOmniVersion)
		if condition == nil || condition.Status != "True" || condition.Reason != test.reason || !strings.Contains(condition.Message, test.message) {
			t.Errorf("%s: %+v", test.version, condition)
		}

		if names := gathered(t, f.objects); !strings.Contains(names, "omni_server_info") || !strings.Contains(names, test.want.Version) {
			t.Errorf("no metric of %s in %s", test.version, names)
		}
	}

	before := f.writes
	f.run()

	if after := f.writes; after != before {
		t.Errorf("a second run writes %d times", after-before)
	}
}

// TestOmniThatIsTooOld checks that an Omni that does not serve what is needed is no missing right of the key.
func TestOmniThatIsTooOld(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)

	definition := resource.NewMetadata(meta.NamespaceName, meta.ResourceDefinitionType, "machinesetstatuses.omni.sidero.dev", resource.VersionUndefined)
	if err := f.omni.Unchecked().Destroy(t.Context(), definition, state.WithDestroyOwner(meta.Owner)); err != nil {
		t.Fatal(err)
	}

	f.expect("Reachable", "False", "TooOld", "Omni v1.9.3 does not serve MachineSetStatus", "upgrade Omni to 1.9 or later")

	status := f.get().Status
	if !apimeta.IsStatusConditionTrue(status.Conditions, "Stalled") || apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionOmniVersion) != nil {
		t.Errorf("%+v", status.Conditions)
	}

	if diff := cmp.Diff(&v1alpha1.OmniServerStatus{Version: "v1.9.3", APIVersion: 2, Instance: "omni"}, status.Omni); diff != "" {
		t.Error(diff)
	}
}
