package validation

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestValidateManifests(t *testing.T) {
	object := *freeForm(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)
	source := &v1alpha1.ValueSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "manifests", Key: "a.yaml"}}
	manifests := func(list ...v1alpha1.Manifest) func(*v1alpha1.OmniCluster) {
		return func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Manifests = list }
	}
	one := func(change func(*v1alpha1.Manifest)) func(*v1alpha1.OmniCluster) {
		manifest := v1alpha1.Manifest{Name: "a", Mode: v1alpha1.ManifestFull, Inline: []v1alpha1.FreeForm{object}}
		change(&manifest)

		return manifests(manifest)
	}
	half := *bigObject(128 << 10)

	checkRules(t, validCluster, ValidateOmniCluster, []row[v1alpha1.OmniCluster]{
		{"two", manifests(v1alpha1.Manifest{Name: "a", Inline: []v1alpha1.FreeForm{object, object}}, v1alpha1.Manifest{Name: "b", ValueFrom: source}), nil},
		{"no name", one(func(m *v1alpha1.Manifest) { m.Name = "" }), []string{"spec.kubernetes.manifests[0].name: Required value"}},
		{"one name twice", manifests(v1alpha1.Manifest{Name: "a", ValueFrom: source}, v1alpha1.Manifest{Name: "a", ValueFrom: source}),
			[]string{"spec.kubernetes.manifests[1].name: Duplicate value"}},
		{"one-time", one(func(m *v1alpha1.Manifest) { m.Mode = v1alpha1.ManifestOneTime }), nil},
		{"unknown mode", one(func(m *v1alpha1.Manifest) { m.Mode = "once" }), []string{"spec.kubernetes.manifests[0].mode: Unsupported value"}},
		{"Omni's label and annotation", one(func(m *v1alpha1.Manifest) {
			m.Labels = map[string]string{"omni.sidero.dev/x": ""}
			m.Annotations = map[string]string{"omni.sidero.dev/y": ""}
		}), []string{
			"spec.kubernetes.manifests[0].labels[omni.sidero.dev/x]: Forbidden",
			"spec.kubernetes.manifests[0].annotations[omni.sidero.dev/y]: Forbidden",
		}},
		{"neither inline nor valueFrom", one(func(m *v1alpha1.Manifest) { m.Inline = nil }), []string{"spec.kubernetes.manifests[0]: Required value"}},
		{"empty inline", one(func(m *v1alpha1.Manifest) { m.Inline = []v1alpha1.FreeForm{} }), []string{"spec.kubernetes.manifests[0]: Required value"}},
		{"inline and valueFrom", one(func(m *v1alpha1.Manifest) { m.ValueFrom = source }), []string{"spec.kubernetes.manifests[0].valueFrom: Forbidden"}},
		{"bad valueFrom", one(func(m *v1alpha1.Manifest) { m.Inline, m.ValueFrom = nil, &v1alpha1.ValueSource{} }),
			[]string{"spec.kubernetes.manifests[0].valueFrom: Required value"}},
		{"largest", one(func(m *v1alpha1.Manifest) { m.Inline = []v1alpha1.FreeForm{half, half} }), nil},
		{"too large together", one(func(m *v1alpha1.Manifest) { m.Inline = []v1alpha1.FreeForm{half, half, object} }),
			[]string{"spec.kubernetes.manifests[0].inline: Invalid value"}},
	})
}

func TestValidateHealthchecks(t *testing.T) {
	job := freeForm(`{"apiVersion":"batch/v1","kind":"Job"}`)
	checks := func(list ...v1alpha1.Healthcheck) func(*v1alpha1.OmniCluster) {
		return func(c *v1alpha1.OmniCluster) { c.Spec.Kubernetes.Healthchecks = list }
	}

	checkRules(t, validCluster, ValidateOmniCluster, []row[v1alpha1.OmniCluster]{
		{"name and ID", checks(v1alpha1.Healthcheck{Name: "a", Job: job}, v1alpha1.Healthcheck{IDOverride: "b", Job: job}), nil},
		{"neither name nor ID", checks(v1alpha1.Healthcheck{Job: job}), []string{"spec.kubernetes.healthchecks[0].name: Required value"}},
		{"one name twice", checks(v1alpha1.Healthcheck{Name: "a", Job: job}, v1alpha1.Healthcheck{Name: "a", Job: job}),
			[]string{"spec.kubernetes.healthchecks[1].name: Duplicate value"}},
		{"one name twice, IDs differ", checks(v1alpha1.Healthcheck{Name: "a", IDOverride: "x", Job: job}, v1alpha1.Healthcheck{Name: "a", IDOverride: "y", Job: job}), nil},
		{"one ID twice", checks(v1alpha1.Healthcheck{Name: "a", IDOverride: "x", Job: job}, v1alpha1.Healthcheck{IDOverride: "x", Job: job}),
			[]string{"spec.kubernetes.healthchecks[1].idOverride: Duplicate value"}},
		{"shortest interval", checks(v1alpha1.Healthcheck{Name: "a", Interval: "5s", Job: job}), nil},
		{"interval too short", checks(v1alpha1.Healthcheck{Name: "a", Interval: "4s", Job: job}), []string{"spec.kubernetes.healthchecks[0].interval: Invalid value"}},
		{"interval no duration", checks(v1alpha1.Healthcheck{Name: "a", Interval: "5", Job: job}), []string{"spec.kubernetes.healthchecks[0].interval: Invalid value"}},
		{"no job", checks(v1alpha1.Healthcheck{Name: "a"}), []string{"spec.kubernetes.healthchecks[0].job: Required value"}},
		{"largest job", checks(v1alpha1.Healthcheck{Name: "a", Job: bigObject(256 << 10)}), nil},
		{"job too large", checks(v1alpha1.Healthcheck{Name: "a", Job: bigObject(256<<10 + 1)}), []string{"spec.kubernetes.healthchecks[0].job: Invalid value"}},
		{"Omni's label and annotation", checks(v1alpha1.Healthcheck{
			Name: "a", Job: job, Labels: map[string]string{"omni.sidero.dev/x": ""}, Annotations: map[string]string{"omni.sidero.dev/y": ""},
		}), []string{
			"spec.kubernetes.healthchecks[0].labels[omni.sidero.dev/x]: Forbidden",
			"spec.kubernetes.healthchecks[0].annotations[omni.sidero.dev/y]: Forbidden",
		}},
	})
}
