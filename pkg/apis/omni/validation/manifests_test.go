package validation

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/install"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

const (
	seeds    = "../../../../test/testdata/seeds"
	examples = "../../../../artifacts/examples"
)

// load decodes a manifest as the API server does with fieldValidation=Strict, and sets the defaults.
func load[T runtime.Object](t *testing.T, folder, file string) T {
	t.Helper()

	obj, ok := loadAny(t, filepath.Join(folder, file)).(T)
	if !ok {
		t.Fatalf("%s is not a %T", file, obj)
	}

	return obj
}

func loadAny(t *testing.T, file string) runtime.Object {
	t.Helper()

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	reader := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	if n, err := reader.Read(make([]byte, len(data)+1)); err != nil || n == 0 {
		t.Fatalf("%s: %d bytes, %v", file, n, err)
	}

	if n, err := reader.Read(make([]byte, len(data)+1)); !errors.Is(err, io.EOF) {
		t.Fatalf("%s has more than one document: %d bytes, %v", file, n, err)
	}

	scheme := runtime.NewScheme()
	install.Install(scheme)

	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(v1alpha1.SchemeGroupVersion)

	obj, err := runtime.Decode(decoder, data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}

	return obj
}

// check runs the rules and the warnings of the object's kind.
func check(t *testing.T, obj runtime.Object) (field.ErrorList, []string) {
	t.Helper()

	switch obj := obj.(type) {
	case *v1alpha1.OmniConnection:
		return ValidateOmniConnection(obj), WarningsForOmniConnection(obj)
	case *v1alpha1.OmniCluster:
		return ValidateOmniCluster(obj), WarningsForOmniCluster(obj)
	case *v1alpha1.OmniControlPlane:
		return ValidateOmniControlPlane(obj), WarningsForOmniControlPlane(obj)
	case *v1alpha1.OmniWorkers:
		return ValidateOmniWorkers(obj), WarningsForOmniWorkers(obj)
	case *v1alpha1.OmniMachine:
		return ValidateOmniMachine(obj), WarningsForOmniMachine(obj)
	case *v1alpha1.OmniKubeconfigExport:
		return ValidateOmniKubeconfigExport(obj), WarningsForOmniKubeconfigExport(obj)
	case *v1alpha1.OmniSecretSync:
		return ValidateOmniSecretSync(obj), nil
	case *v1alpha1.OmniHelmRelease:
		return ValidateOmniHelmRelease(obj), WarningsForOmniHelmRelease(obj)
	case *v1alpha1.OmniRolloutPolicy:
		return ValidateOmniRolloutPolicy(obj), WarningsForOmniRolloutPolicy(obj)
	default:
		t.Fatalf("%T is none of our kinds", obj)

		return nil, nil
	}
}

// TestManifestsAreValid decodes every manifest that users are shown. The literal list of them makes sure that none is
// missed.
func TestManifestsAreValid(t *testing.T) {
	warned := map[string][]string{
		"kubeconfig-export-breakglass.yaml": {"spec.serviceAccount.groups[0]: Kubernetes itself uses system: groups; bind one of your own"},
	}

	for folder, want := range map[string][]string{
		seeds: {
			"cluster-suspended.yaml", "connection.yaml", "helm-release.yaml", "kubeconfig-export-breakglass.yaml",
			"kubeconfig-export-for-helm.yaml", "kubeconfig-export-key.yaml", "kubeconfig-export.yaml", "secret-sync.yaml",
		},
		examples: {
			"cluster.yaml", "connection.yaml", "controlplane.yaml", "helm-release.yaml", "kubeconfig-export.yaml",
			"machine.yaml", "rollout-policy.yaml", "secret-sync.yaml", "workers-class.yaml", "workers-static.yaml",
		},
	} {
		paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}

		var got []string

		for _, path := range paths {
			got = append(got, filepath.Base(path))

			t.Run(path, func(t *testing.T) {
				errs, warnings := check(t, loadAny(t, path))
				checkErrors(t, errs, nil)
				checkWarnings(t, warnings, warned[filepath.Base(path)])
			})
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("files of %s (-want +got):\n%s", folder, diff)
		}
	}
}

// The seeds have to mean what their pages say, defaults included.
func TestSeedsMeanWhatTheySay(t *testing.T) {
	equal := func(what string, got, want any) {
		t.Helper()

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	cluster := load[*v1alpha1.OmniCluster](t, seeds, "cluster-suspended.yaml")
	equal("suspended", cluster.Spec.Suspend, true)
	equal("name in Omni", cluster.EffectiveClusterName(), "cluster-01")
	equal("the remote cluster goes with the object", cluster.Spec.DeletePolicy, v1alpha1.OmniClusterDeletePolicy{})
	equal("change policy", cluster.Spec.ChangePolicy, v1alpha1.ChangePolicyApply)
	equal("interval", cluster.Spec.SyncInterval, v1alpha1.Duration("5m"))
	equal("extensions are left alone", cluster.Spec.SystemExtensions, []string(nil))

	connection := load[*v1alpha1.OmniConnection](t, seeds, "connection.yaml")
	equal("key Secret", connection.Spec.Auth.ServiceAccountSecretRef, v1alpha1.SecretKeyReference{Name: "omni-service-account", Key: "serviceAccountKey"})

	export := load[*v1alpha1.OmniKubeconfigExport](t, seeds, "kubeconfig-export.yaml")
	equal("export's key", export.Spec.TargetSecretRef.Key, "kubeconfig")
	equal("export's format", export.Spec.Format, v1alpha1.FormatKubeconfig)

	withKey := load[*v1alpha1.OmniKubeconfigExport](t, seeds, "kubeconfig-export-key.yaml")
	equal("export's own key", withKey.Spec.TargetSecretRef.Key, "workload.kubeconfig")

	sync := load[*v1alpha1.OmniSecretSync](t, seeds, "secret-sync.yaml")
	equal("sync's kubeconfig", sync.Spec.KubeconfigSecretRef, v1alpha1.SecretKeyReference{Name: "cluster-01-automation-kubeconfig", Key: "kubeconfig"})
	equal("sync's target", sync.Spec.TargetSecretRef, v1alpha1.NamespacedSecretReference{Name: "cluster-01-ghcr", Namespace: "flux-system"})
	equal("foreign Secrets are not overwritten", sync.Spec.Adopt, false)

	release := load[*v1alpha1.OmniHelmRelease](t, seeds, "helm-release.yaml")
	equal("release name", release.EffectiveReleaseName(), "metrics-server")
	equal("release's kubeconfig key", release.Spec.KubeconfigSecretRef.Key, "kubeconfig")
	equal("values", string(release.Spec.Chart.Values.Raw), `{"replicas":2}`)
	equal("version is a text", release.Spec.Chart.Version, "3.13.0")
	equal("uninstall on deletion", release.Spec.DeletionPolicy, v1alpha1.ReleaseUninstall)
	equal("defaults", []any{*release.Spec.MaxHistory, *release.Spec.Retries, release.Spec.Interval, release.Spec.DriftDetection.Mode},
		[]any{int32(10), int32(3), v1alpha1.Duration("10m"), v1alpha1.DriftDisabled})
}

// Objects that the pages describe as refused are refused.
func TestSeedsWithForbiddenChanges(t *testing.T) {
	export := load[*v1alpha1.OmniKubeconfigExport](t, seeds, "kubeconfig-export-breakglass.yaml")
	export.Spec.ServiceAccount.AllowClusterAdmin = false
	checkErrors(t, ValidateOmniKubeconfigExport(export), []string{"spec.serviceAccount.groups[0]: Forbidden"})

	cluster := load[*v1alpha1.OmniCluster](t, seeds, "cluster-suspended.yaml")
	cluster.Spec.DeletePolicy = v1alpha1.OmniClusterDeletePolicy{Orphan: true, DestroyMachines: true}
	checkErrors(t, ValidateOmniCluster(cluster), []string{"spec.deletePolicy.destroyMachines: Forbidden"})

	manifest := v1alpha1.Manifest{Name: "cni", Mode: v1alpha1.ManifestFull, Inline: []v1alpha1.FreeForm{*freeForm(`{"kind":"ConfigMap"}`)}}
	cluster = load[*v1alpha1.OmniCluster](t, seeds, "cluster-suspended.yaml")
	cluster.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{manifest, manifest}
	checkErrors(t, ValidateOmniCluster(cluster), []string{"spec.kubernetes.manifests[1].name: Duplicate value"})
}

// The example sets show both ways to give a set machines; together they form one cluster.
func TestExamplesFormOneCluster(t *testing.T) {
	cluster := load[*v1alpha1.OmniCluster](t, examples, "cluster.yaml")
	connection := load[*v1alpha1.OmniConnection](t, examples, "connection.yaml")
	plane := load[*v1alpha1.OmniControlPlane](t, examples, "controlplane.yaml")
	class := load[*v1alpha1.OmniWorkers](t, examples, "workers-class.yaml")
	static := load[*v1alpha1.OmniWorkers](t, examples, "workers-static.yaml")
	machine := load[*v1alpha1.OmniMachine](t, examples, "machine.yaml")

	if cluster.Spec.ConnectionRef.Name != connection.Name {
		t.Errorf("the cluster names the connection %s, not %s", cluster.Spec.ConnectionRef.Name, connection.Name)
	}

	for _, ref := range []string{plane.Spec.ClusterRef.Name, class.Spec.ClusterRef.Name, static.Spec.ClusterRef.Name, machine.Spec.ClusterRef.Name} {
		if ref != cluster.Name {
			t.Errorf("a document names the cluster %s, not %s", ref, cluster.Name)
		}
	}

	if static.Spec.Machines[0] != machine.Spec.MachineID {
		t.Error("the worker set does not list the machine, so its settings would not count")
	}

	if *class.Spec.MachineClass.Size != intstr.FromInt32(2) {
		t.Errorf("size %v", class.Spec.MachineClass.Size)
	}
}
