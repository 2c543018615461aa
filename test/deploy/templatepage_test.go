package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestInstallPageTemplate: what install.md renders for Git is what kustomize builds from the base, with the page's image. What
// only `helm test` uses is not in it: Git would start its Pods at once, and a change of them would be refused.
func TestInstallPageTemplate(t *testing.T) {
	const ours, theirs = "image: omni-cluster-operator:", "image: registry.example.com/omni-cluster-operator:"

	rendered := helmTemplate(t, shellBlock(t, filepath.Join(root, "docs/how-to/install.md"), "helm template"))
	if !strings.Contains(rendered, theirs) {
		t.Errorf("the page's image is not in what it renders")
	}

	want := slices.DeleteFunc(decode(t, build(t, baseDir)), func(object *unstructured.Unstructured) bool { return object.GetKind() == "Namespace" })
	got := decode(t, strings.ReplaceAll(helmsOwn.ReplaceAllString(rendered, ""), theirs, ours))

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-base +page:\n%s", diff)
	}
}

// helmTemplate does what `helm template` does with the arguments of a page: Helm renders, and prints the hooks as well unless
// they are tests that are not wanted.
func helmTemplate(t *testing.T, command string) string {
	t.Helper()

	command, _, _ = strings.Cut(strings.ReplaceAll(command, "\\\n", " "), ">")
	flags := pflag.NewFlagSet("helm template", pflag.ContinueOnError)
	in := flags.String("namespace", "", "")
	version := flags.String("kube-version", "", "")
	set := flags.StringArray("set", nil, "")
	skipTests := flags.Bool("skip-tests", false, "")

	if err := flags.Parse(strings.Fields(command)[2:]); err != nil {
		t.Fatal(err)
	}

	chart, err := loader.Load(filepath.Join(root, flags.Arg(1)))
	if err != nil {
		t.Fatal(err)
	}

	install := action.NewInstall(action.NewConfiguration())
	install.ReleaseName, install.Namespace, install.DryRunStrategy = flags.Arg(0), *in, action.DryRunClient

	if install.KubeVersion, err = common.ParseKubeVersion(*version); err != nil {
		t.Fatal(err)
	}

	values := map[string]any{}
	for _, one := range *set {
		if err := strvals.ParseInto(one, values); err != nil {
			t.Fatal(err)
		}
	}

	result, err := install.RunWithContext(t.Context(), chart, values)
	if err != nil {
		t.Fatal(err)
	}

	release := result.(*releasev1.Release)
	text := release.Manifest

	for _, hook := range release.Hooks {
		if !*skipTests || !slices.Contains(hook.Events, releasev1.HookTest) {
			text += "\n---\n" + hook.Manifest
		}
	}

	return text
}
