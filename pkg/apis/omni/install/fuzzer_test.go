package install

import (
	"bytes"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const rounds = 500

func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 3).
		Funcs(fuzzerFuncs(runtimeserializer.NewCodecFactory(runtime.NewScheme()))...)
}

func TestFreeFormIsCompactJSON(t *testing.T) {
	f := filler(1)
	longest := 0

	for range rounds {
		var block v1alpha1.FreeForm

		f.Fill(&block)

		var compact bytes.Buffer
		if err := json.Compact(&compact, block.Raw); err != nil {
			t.Fatalf("%s: %v", block.Raw, err)
		}

		if !bytes.Equal(compact.Bytes(), block.Raw) || block.Raw[0] != '{' {
			t.Fatalf("no compact object: %s", block.Raw)
		}

		longest = max(longest, len(block.Raw))
	}

	if longest < 100 {
		t.Errorf("all blocks are small, the longest has %d bytes", longest)
	}
}

func TestSizeIsNumberOrWord(t *testing.T) {
	f := filler(2)
	seen := map[intstr.Type]bool{}

	for range rounds {
		var size intstr.IntOrString

		f.Fill(&size)
		seen[size.Type] = true

		if size.Type == intstr.Int && size.StrVal != "" || size.Type == intstr.String && size.IntVal != 0 {
			t.Fatalf("both: %+v", size)
		}
	}

	if !seen[intstr.Int] || !seen[intstr.String] {
		t.Errorf("only %v seen", seen)
	}
}

func TestObjectsHaveDefaults(t *testing.T) {
	f := filler(3)

	for range rounds {
		var (
			connection v1alpha1.OmniConnection
			cluster    v1alpha1.OmniCluster
			export     v1alpha1.OmniKubeconfigExport
			sync       v1alpha1.OmniSecretSync
			release    v1alpha1.OmniHelmRelease
		)

		f.Fill(&connection)
		f.Fill(&cluster)
		f.Fill(&export)
		f.Fill(&sync)
		f.Fill(&release)

		for i, unset := range []bool{
			connection.Spec.Auth.ServiceAccountSecretRef.Key == "",
			cluster.Spec.ChangePolicy == "" || cluster.Spec.SyncInterval == "",
			export.Spec.TargetSecretRef.Key == "" || export.Spec.Format == "" || export.Spec.DeletionPolicy == "",
			sync.Spec.KubeconfigSecretRef.Key == "" || sync.Spec.DeletionPolicy == "",
			release.Spec.Namespace == "" || release.Spec.Timeout == "" || release.Spec.Retries == nil || release.Spec.MaxHistory == nil,
			release.Spec.Interval == "" || release.Spec.DriftDetection.Mode == "" || release.Spec.DeletionPolicy == "",
		} {
			if unset {
				t.Fatalf("a default is unset: check %d", i)
			}
		}
	}
}
