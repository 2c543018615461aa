package e2ecertmanager

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	sigsyaml "sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	root     = "../.."
	chartDir = root + "/artifacts/chart/omni-cluster-operator"
	release  = "omni-cluster-operator"
	// namespace is that of the release, and registration the name of the APIService.
	namespace    = env.SystemNamespace
	registration = "v1alpha1.omni.texashpc.com"
)

// helmClient installs the chart as an administrator does, but for the network: see network.
type helmClient struct {
	t      *testing.T
	config *action.Configuration
}

func newHelm(t *testing.T, hub *env.Hub) *helmClient {
	t.Helper()

	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &hub.KubeconfigPath
	*flags.Namespace = namespace

	config := action.NewConfiguration()
	if err := config.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}

	return &helmClient{t: t, config: config}
}

func (h *helmClient) install(rewrite postRenderer) {
	h.t.Helper()

	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace = release, namespace
	// There are no nodes: no Pod of the workloads becomes ready.
	install.WaitStrategy, install.Timeout, install.ServerSideApply = kube.HookOnlyStrategy, time.Minute, true
	install.PostRenderer = rewrite

	if _, err := install.RunWithContext(h.t.Context(), loadChart(h.t), map[string]any{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *helmClient) upgrade(t *testing.T, values string, rewrite postRenderer) {
	t.Helper()

	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace = namespace
	upgrade.WaitStrategy, upgrade.Timeout = kube.HookOnlyStrategy, time.Minute
	// Without it, no values mean those of before.
	upgrade.ResetValues = true
	upgrade.PostRenderer = rewrite

	given, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := upgrade.RunWithContext(t.Context(), release, loadChart(t), given); err != nil {
		t.Fatal(err)
	}
}

func (h *helmClient) uninstall(t *testing.T) {
	t.Helper()

	uninstall := action.NewUninstall(h.config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, time.Minute

	if _, err := uninstall.Run(release); err != nil {
		t.Fatal(err)
	}
}

func loadChart(t *testing.T) *chartv2.Chart {
	t.Helper()

	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}

	return chart
}

// render returns the objects in these files of a chart's templates, as `helm install` would make them.
func render(t *testing.T, dir, name, in string, only ...string) []*unstructured.Unstructured {
	t.Helper()

	chart, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}

	values, err := util.ToRenderValues(chart, nil, common.ReleaseOptions{Name: name, Namespace: in, Revision: 1, IsInstall: true},
		common.DefaultCapabilities.Copy())
	if err != nil {
		t.Fatal(err)
	}

	files, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}

	var objects []*unstructured.Unstructured

	for path, text := range files {
		if len(only) > 0 && !slices.Contains(only, filepath.Base(path)) || strings.HasPrefix(filepath.Base(path), "_") || filepath.Ext(path) != ".yaml" {
			continue
		}

		decoded, err := decode(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}

		objects = append(objects, decoded...)
	}

	return objects
}

func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)

	for {
		object := &unstructured.Unstructured{}

		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

func encode(objects []*unstructured.Unstructured) (string, error) {
	var b strings.Builder

	for _, object := range objects {
		text, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			return "", err
		}

		fmt.Fprintf(&b, "---\n%s", text)
	}

	return b.String(), nil
}

// postRenderer changes what Helm renders before it is applied.
type postRenderer func(object *unstructured.Unstructured) error

// Run implements Helm's interface.
func (p postRenderer) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := decode(rendered.String())
	if err != nil {
		return nil, err
	}

	for _, object := range objects {
		if err := p(object); err != nil {
			return nil, err
		}
	}

	text, err := encode(objects)

	return bytes.NewBufferString(text), err
}

// network stands for the network of a cluster: the Service leads to a port on loopback. In an installation this is what
// kube-proxy does.
func network(port int) postRenderer {
	return func(object *unstructured.Unstructured) error {
		switch {
		case object.GetKind() == "Service" && object.GetName() == "omni-apiserver":
			return unstructured.SetNestedMap(object.Object, map[string]any{
				"type": "ExternalName", "externalName": "localhost",
				"ports": []any{map[string]any{"name": "https", "port": int64(port)}},
			}, "spec")
		case object.GetKind() == "APIService":
			return unstructured.SetNestedField(object.Object, int64(port), "spec", "service", "port")
		default:
			return nil
		}
	}
}

// before rewrites the Certificates to what earlier versions of the chart had.
func (p postRenderer) before() postRenderer {
	return func(object *unstructured.Unstructured) error {
		if object.GetKind() == "Certificate" {
			unstructured.RemoveNestedField(object.Object, "spec", "revisionHistoryLimit")
			unstructured.RemoveNestedField(object.Object, "spec", "usages")

			if object.GetName() != authority {
				if err := unstructured.SetNestedSlice(object.Object, []any{"digital signature", "key encipherment", "server auth"}, "spec", "usages"); err != nil {
					return err
				}
			}
		}

		return p(object)
	}
}
