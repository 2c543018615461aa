package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestHelmReleaseIndexes(t *testing.T) {
	release := &v1alpha1.OmniHelmRelease{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	release.Spec.DependsOn = []v1alpha1.LocalObjectReference{{Name: "one"}, {Name: "two"}}
	release.Spec.Chart = v1alpha1.HelmChart{
		AuthSecretRef: &v1alpha1.LocalObjectReference{Name: "auth"}, CASecretRef: &v1alpha1.LocalObjectReference{Name: "ca"},
		Verify: &v1alpha1.HelmVerify{KeyringSecretRef: v1alpha1.SecretKeyReference{Name: "keys"}},
		ValuesFrom: []v1alpha1.HelmValuesReference{
			{Kind: v1alpha1.ValuesSecret, Name: "values"}, {Kind: v1alpha1.ValuesSecret, Name: "auth"},
			{Kind: v1alpha1.ValuesConfigMap, Name: "config"}, {Kind: v1alpha1.ValuesConfigMap, Name: "config", Key: "other"},
		},
	}

	got := map[string][]string{}
	for _, i := range helmReleases() {
		got[i.Name] = i.Values(release)
	}

	want := map[string][]string{ByValueSecret: {"auth", "ca", "keys", "values"}, ByValueConfigMap: {"config"}, ByDependency: {"one", "two"}, ByUID: {"uid"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
