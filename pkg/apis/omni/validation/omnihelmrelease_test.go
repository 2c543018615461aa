package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func validRelease() *v1alpha1.OmniHelmRelease {
	return &v1alpha1.OmniHelmRelease{
		ObjectMeta: meta("metrics-server"),
		Spec: v1alpha1.OmniHelmReleaseSpec{
			ClusterRef:          v1alpha1.LocalObjectReference{Name: "cluster-01"},
			KubeconfigSecretRef: v1alpha1.SecretKeyReference{Name: "automation", Key: "kubeconfig"},
			Namespace:           "kube-system",
			Chart:               v1alpha1.HelmChart{Repository: "https://charts.example.com/stable/", Chart: "metrics-server", Version: "3.13.0"},
			Timeout:             "5m",
			Interval:            "10m",
			MaxHistory:          new(int32(10)),
			Retries:             new(int32(3)),
			DriftDetection:      v1alpha1.DriftDetection{Mode: v1alpha1.DriftDisabled},
			DeletionPolicy:      v1alpha1.ReleaseUninstall,
		},
	}
}

func TestValidateOmniHelmRelease(t *testing.T) {
	name := func(metaName, specName string) func(*v1alpha1.OmniHelmRelease) {
		return func(r *v1alpha1.OmniHelmRelease) { r.Name, r.Spec.ReleaseName = metaName, specName }
	}
	depends := func(names ...string) func(*v1alpha1.OmniHelmRelease) {
		return func(r *v1alpha1.OmniHelmRelease) {
			for _, name := range names {
				r.Spec.DependsOn = append(r.Spec.DependsOn, v1alpha1.LocalObjectReference{Name: name})
			}
		}
	}
	ignore := func(paths ...string) func(*v1alpha1.OmniHelmRelease) {
		return func(r *v1alpha1.OmniHelmRelease) {
			r.Spec.DriftDetection.Ignore = []v1alpha1.DriftIgnore{{Paths: paths}}
		}
	}
	longest := strings.Repeat("a", 53)

	const badName = "spec.releaseName: Invalid value"

	checkRules(t, validRelease, ValidateOmniHelmRelease, []row[v1alpha1.OmniHelmRelease]{
		{name: "valid"},
		{"everything missing", func(r *v1alpha1.OmniHelmRelease) { r.Spec = v1alpha1.OmniHelmReleaseSpec{} }, []string{
			"spec.clusterRef.name: Required value", "spec.kubeconfigSecretRef.name: Required value", "spec.chart.chart: Required value",
		}},
		{"release name", name("a", "a.b-c"), nil},
		{"longest release name", name("a", longest), nil},
		{"release name too long", name("a", longest+"a"), []string{badName}},
		{"release name with capital", name("a", "A"), []string{badName}},
		{"release name with underscore", name("a", "a_b"), []string{badName}},
		{"metadata.name too long to serve", name(longest+"a", ""), []string{badName}},
		{"metadata.name too long, release name set", name(longest+"a", "a"), nil},
		{"namespace wrong", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Namespace = "a.b" }, []string{"spec.namespace: Invalid value"}},
		{"timeout bounds", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Timeout = "24h" }, nil},
		{"timeout too long", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Timeout = "25h" }, []string{"spec.timeout: Invalid value"}},
		{"timeout 0", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Timeout = "0s" }, []string{"spec.timeout: Invalid value"}},
		{"timeout no duration", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Timeout = "5" }, []string{"spec.timeout: Invalid value"}},
		{"interval too short", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Interval = "29s" }, []string{"spec.interval: Invalid value"}},
		{"interval no duration", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Interval = "x" }, []string{"spec.interval: Invalid value"}},
		{"wait and waitForJobs", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Wait, r.Spec.WaitForJobs = true, true }, nil},
		{"waitForJobs without wait", func(r *v1alpha1.OmniHelmRelease) { r.Spec.WaitForJobs = true }, nil},
		{"atomic", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Atomic = new(true) }, nil},
		{"atomic and rollbackOnFailure", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Atomic, r.Spec.RollbackOnFailure = new(true), new(true) }, nil},
		{"atomic against rollbackOnFailure", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Atomic, r.Spec.RollbackOnFailure = new(true), new(false) },
			[]string{"spec.atomic: Invalid value"}},
		{"smallest numbers", func(r *v1alpha1.OmniHelmRelease) { r.Spec.MaxHistory, r.Spec.Retries = new(int32(0)), new(int32(0)) }, nil},
		{"numbers too small", func(r *v1alpha1.OmniHelmRelease) { r.Spec.MaxHistory, r.Spec.Retries = new(int32(-1)), new(int32(-1)) },
			[]string{"spec.maxHistory: Invalid value", "spec.retries: Invalid value"}},
		{"drift modes", func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = v1alpha1.DriftCorrect }, nil},
		{"unknown drift mode", func(r *v1alpha1.OmniHelmRelease) { r.Spec.DriftDetection.Mode = "warn" },
			[]string{"spec.driftDetection.mode: Unsupported value"}},
		{"ignored paths", ignore("/spec/replicas", "/metadata/annotations/a.b~1c", "/a//b"), nil},
		{"no ignored paths", ignore(), []string{"spec.driftDetection.ignore[0].paths: Required value"}},
		{"no JSON pointers", ignore("spec.replicas", "", "/a~2"), []string{
			"spec.driftDetection.ignore[0].paths[0]: Invalid value", "spec.driftDetection.ignore[0].paths[1]: Invalid value",
			"spec.driftDetection.ignore[0].paths[2]: Invalid value",
		}},
		{"one path twice", ignore("/a", "/a"), []string{"spec.driftDetection.ignore[0].paths[1]: Duplicate value"}},
		{"dependencies", depends("cilium", "cert-manager"), nil},
		{"bad dependencies", depends("", "A", "metrics-server", "b", "b"), []string{
			"spec.dependsOn[0].name: Required value", "spec.dependsOn[1].name: Invalid value",
			"spec.dependsOn[2].name: Invalid value", "spec.dependsOn[4].name: Duplicate value",
		}},
		{"orphan", func(r *v1alpha1.OmniHelmRelease) { r.Spec.DeletionPolicy = v1alpha1.ReleaseOrphan }, nil},
		{"deletion policy of another kind", func(r *v1alpha1.OmniHelmRelease) { r.Spec.DeletionPolicy = "Delete" },
			[]string{"spec.deletionPolicy: Unsupported value"}},
	})
}

func TestValidateChart(t *testing.T) {
	source := func(repository, chart string) func(*v1alpha1.OmniHelmRelease) {
		return func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Repository, r.Spec.Chart.Chart = repository, chart }
	}
	set := func(change func(*v1alpha1.HelmChart)) func(*v1alpha1.OmniHelmRelease) {
		return func(r *v1alpha1.OmniHelmRelease) { change(&r.Spec.Chart) }
	}
	from := func(refs ...v1alpha1.HelmValuesReference) func(*v1alpha1.OmniHelmRelease) {
		return set(func(c *v1alpha1.HelmChart) { c.ValuesFrom = refs })
	}
	digest := "sha256:" + strings.Repeat("0a", 32)

	const (
		badRepository = "spec.chart.repository: Invalid value"
		badChart      = "spec.chart.chart: Invalid value"
	)

	checkRules(t, validRelease, ValidateOmniHelmRelease, []row[v1alpha1.OmniHelmRelease]{
		{"http repository", source("http://charts.example.com", "a"), nil},
		{"OCI", source("", "oci://registry.example.com/charts/a"), nil},
		{"no repository", source("", "a"), []string{"spec.chart.repository: Required value"}},
		{"OCI and repository", source("https://charts.example.com", "oci://registry.example.com/a"), nil},
		{"OCI and OCI repository", source("oci://registry.example.com", "oci://registry.example.com/a"), nil},
		{"OCI and repository with user info", source("https://me:secret@charts.example.com", "oci://registry.example.com/a"), []string{badRepository}},
		{"OCI repository", source("oci://registry.example.com/charts", "a"), []string{badRepository}},
		{"repository without host", source("https:///stable", "a"), []string{badRepository}},
		{"other scheme", source("file:///charts", "a"), []string{badRepository, badRepository}},
		{"user info", source("https://me:secret@charts.example.com", "a"), []string{badRepository}},
		{"OCI user info", source("", "oci://me:secret@registry.example.com/a"), []string{badChart}},
		{"OCI without path", source("", "oci://registry.example.com/"), []string{badChart}},
		{"OCI without host", source("", "oci:///a"), []string{badChart}},
		{"path on the disk", source("https://charts.example.com", "./chart"), []string{badChart}},
		{"absolute path", source("https://charts.example.com", "/etc/chart"), []string{badChart}},
		{"parent folder", source("https://charts.example.com", ".."), []string{badChart}},
		{"repository in the chart's name", source("https://charts.example.com", "stable/a"), []string{badChart}},
		{"URL of an archive", source("", "https://charts.example.com/a-1.tgz"), []string{badChart, "spec.chart.repository: Required value"}},
		{"version range", set(func(c *v1alpha1.HelmChart) { c.Version = ">=1.2.0-0, <2 || ~3.1" }), nil},
		{"no version", set(func(c *v1alpha1.HelmChart) { c.Version = "" }), nil},
		{"bad version", set(func(c *v1alpha1.HelmChart) { c.Version = "1.2.3;x" }), []string{"spec.chart.version: Invalid value"}},
		{"version too long", set(func(c *v1alpha1.HelmChart) { c.Version = strings.Repeat("1", 254) }), []string{"spec.chart.version: Invalid value"}},
		{"digest", set(func(c *v1alpha1.HelmChart) { c.Digest = digest }), nil},
		{"digest too short", set(func(c *v1alpha1.HelmChart) { c.Digest = digest[:70] }), []string{"spec.chart.digest: Invalid value"}},
		{"digest in capitals", set(func(c *v1alpha1.HelmChart) { c.Digest = "sha256:" + strings.Repeat("0A", 32) }), []string{"spec.chart.digest: Invalid value"}},
		{"digest without algorithm", set(func(c *v1alpha1.HelmChart) { c.Digest = digest[7:] }), []string{"spec.chart.digest: Invalid value"}},
		{"largest values", set(func(c *v1alpha1.HelmChart) { c.Values = bigObject(256 << 10) }), nil},
		{"values too large", set(func(c *v1alpha1.HelmChart) { c.Values = bigObject(256<<10 + 1) }), []string{"spec.chart.values: Invalid value"}},
		{"values from both kinds", from(v1alpha1.HelmValuesReference{Kind: v1alpha1.ValuesConfigMap, Name: "a"},
			v1alpha1.HelmValuesReference{Kind: v1alpha1.ValuesSecret, Name: "a", Key: "b", TargetPath: "c.d", Optional: new(true)}), nil},
		{"values from nothing", from(v1alpha1.HelmValuesReference{}),
			[]string{"spec.chart.valuesFrom[0].kind: Required value", "spec.chart.valuesFrom[0].name: Required value"}},
		{"values from bad names", from(v1alpha1.HelmValuesReference{Kind: "Pod", Name: "A", Key: "a/b", TargetPath: strings.Repeat("a", 254)}), []string{
			"spec.chart.valuesFrom[0].kind: Unsupported value", "spec.chart.valuesFrom[0].name: Invalid value",
			"spec.chart.valuesFrom[0].key: Invalid value", "spec.chart.valuesFrom[0].targetPath: Too long",
		}},
		{"Secrets", set(func(c *v1alpha1.HelmChart) {
			c.AuthSecretRef, c.CASecretRef = &v1alpha1.LocalObjectReference{Name: "a"}, &v1alpha1.LocalObjectReference{Name: "b"}
			c.Verify = &v1alpha1.HelmVerify{KeyringSecretRef: v1alpha1.SecretKeyReference{Name: "c", Key: "keyring"}}
		}), nil},
		{"Secrets without names", set(func(c *v1alpha1.HelmChart) {
			c.AuthSecretRef, c.CASecretRef, c.Verify = &v1alpha1.LocalObjectReference{}, &v1alpha1.LocalObjectReference{}, &v1alpha1.HelmVerify{}
		}), []string{
			"spec.chart.authSecretRef.name: Required value", "spec.chart.caSecretRef.name: Required value",
			"spec.chart.verify.keyringSecretRef.name: Required value",
		}},
	})
}

func TestValidateOmniHelmReleaseUpdate(t *testing.T) {
	redirect := func(r *v1alpha1.OmniHelmRelease) { r.Spec.ReleaseName, r.Spec.Namespace = "other", "other" }
	redirected := []string{"spec.releaseName: Invalid value", "spec.namespace: Invalid value"}

	checkUpdates(t, validRelease, ValidateOmniHelmReleaseUpdate, []updateRow[v1alpha1.OmniHelmRelease]{
		{name: "nothing changed"},
		{"new version", nil, func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Version = "4.0.0" }, nil},
		{"the same name, now written down", nil, func(r *v1alpha1.OmniHelmRelease) { r.Spec.ReleaseName = "metrics-server" }, nil},
		{"redirected", nil, redirect, redirected},
		{"redirected while being deleted", func(r *v1alpha1.OmniHelmRelease) { deleting(&r.ObjectMeta) }, redirect, redirected},
		{"other rules while being deleted", func(r *v1alpha1.OmniHelmRelease) { deleting(&r.ObjectMeta) },
			func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Chart = "" }, nil},
		{"values of an older rule, annotation changed", func(r *v1alpha1.OmniHelmRelease) { r.Spec.Chart.Values = bigObject(300 << 10) },
			func(r *v1alpha1.OmniHelmRelease) { r.Annotations = map[string]string{"a": "b"} }, nil},
	})
}

func TestValidateOmniHelmReleaseStatusUpdate(t *testing.T) {
	history := func(revisions ...int32) func(*v1alpha1.OmniHelmRelease) {
		return func(r *v1alpha1.OmniHelmRelease) {
			for _, revision := range revisions {
				r.Status.History = append(r.Status.History, v1alpha1.HelmRevision{Revision: revision})
			}
		}
	}

	checkUpdates(t, validRelease, ValidateOmniHelmReleaseStatusUpdate, []updateRow[v1alpha1.OmniHelmRelease]{
		{"history", nil, history(3, 2, 1), nil},
		{"revision twice", nil, history(3, 3), []string{"status.history[1].revision: Duplicate value"}},
	})
}

func TestWarningsForOmniHelmRelease(t *testing.T) {
	release := validRelease()
	checkWarnings(t, WarningsForOmniHelmRelease(release), nil)

	release.Spec.Chart.Repository = "http://charts.example.com"
	release.Spec.Chart.Values = freeForm(`{"id":9223372036854775808}`)
	checkWarnings(t, WarningsForOmniHelmRelease(release), []string{
		"spec.chart.values.id: quote an integer of 2^63 or more: server-side apply rounds it",
		"spec.chart.repository: the connection is not encrypted; use https",
	})

	release = validRelease()
	release.Spec.Chart.Repository, release.Spec.Chart.Chart = "https://charts.example.com", "oci://registry.example.com/a"
	release.Spec.WaitForJobs, release.Spec.Atomic, release.Spec.MaxHistory = true, new(true), new(int32(0))
	checkWarnings(t, WarningsForOmniHelmRelease(release), []string{
		"spec.chart.repository: not used with an oci:// chart; remove it",
		"spec.waitForJobs: does nothing without wait; set wait: true",
		"spec.atomic: the older name of rollbackOnFailure; use that",
		"spec.maxHistory: 0 keeps every revision, a Secret each in the workload cluster",
	})
}

// A client-side apply says in an annotation what it was to apply, and sends a patch, in which a null removes what it names.
func TestWarningsForLostNulls(t *testing.T) {
	manifest := func(values string) string {
		return `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"a"},"spec":{"chart":{"chart":"demo","values":` + values + `}}}`
	}

	for name, test := range map[string]struct {
		before, applied, arrived string
		want                     []string
	}{
		"lost": {"", manifest(`{"a":null,"b":{"c":null,"d":1},"e":{"f":null}}`), `{"b":{"d":1}}`, []string{
			"spec.chart.values.a: client-side apply loses a null; use kubectl apply --server-side",
			"spec.chart.values.b.c: client-side apply loses a null; use kubectl apply --server-side",
			"spec.chart.values.e.f: client-side apply loses a null; use kubectl apply --server-side",
		}},
		"no values are left":        {"", manifest(`{"a":null}`), "", []string{"spec.chart.values.a: client-side apply loses a null; use kubectl apply --server-side"}},
		"arrived":                   {"", manifest(`{"a":null,"b":[null,{"c":null}]}`), `{"a":null,"b":[null,{"c":null}]}`, nil},
		"of an apply before":        {manifest(`{"a":null}`), manifest(`{"a":null}`), `{}`, nil},
		"a text that says null":     {"", manifest(`{"a":"null"}`), `{}`, nil},
		"no manifest":               {"", "null null", `{}`, nil},
		"values that are no object": {"", manifest(`[null]`), `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, obj := validRelease(), validRelease()
			old.Annotations, obj.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: test.before}, map[string]string{corev1.LastAppliedConfigAnnotation: test.applied}

			obj.Spec.Chart.Values = nil
			if test.arrived != "" {
				obj.Spec.Chart.Values = freeForm(test.arrived)
			}

			checkWarnings(t, WarningsForOmniHelmReleaseUpdate(obj, old), test.want)
		})
	}
}

func TestWarningsForAnotherChart(t *testing.T) {
	for chart, want := range map[string][]string{
		"metrics-server": nil,
		"oci://mirror.example.com/charts/metrics-server":      nil,
		"oci://mirror.example.com/charts/podinfo":             {`spec.chart.chart: another chart: Helm deletes the objects that "podinfo" does not have`},
		"oci://mirror.example.com/" + strings.Repeat("x", 99): {`spec.chart.chart: another chart: Helm deletes the objects that "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" does not have`},
	} {
		release := validRelease()
		release.Spec.Chart.Chart = chart

		checkWarnings(t, WarningsForOmniHelmReleaseUpdate(release, validRelease()), want)
	}
}
