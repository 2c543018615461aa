package validation

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni"
)

func TestValidateManifests(t *testing.T) {
	object := *freeForm(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)
	source := &omni.ValueSource{ConfigMapKeyRef: &omni.KeyReference{Name: "manifests", Key: "a.yaml"}}
	manifests := func(list ...omni.Manifest) func(*omni.OmniCluster) {
		return func(c *omni.OmniCluster) { c.Spec.Kubernetes.Manifests = list }
	}
	one := func(change func(*omni.Manifest)) func(*omni.OmniCluster) {
		manifest := omni.Manifest{Name: "a", Mode: omni.ManifestFull, Inline: []omni.FreeForm{object}}
		change(&manifest)

		return manifests(manifest)
	}
	half := *bigObject(128 << 10)

	checkRules(t, validCluster, ValidateOmniCluster, []row[omni.OmniCluster]{
		{"two", manifests(omni.Manifest{Name: "a", Inline: []omni.FreeForm{object, object}}, omni.Manifest{Name: "b", ValueFrom: source}), nil},
		{"no name", one(func(m *omni.Manifest) { m.Name = "" }), []string{"spec.kubernetes.manifests[0].name: Required value"}},
		{"one name twice", manifests(omni.Manifest{Name: "a", ValueFrom: source}, omni.Manifest{Name: "a", ValueFrom: source}),
			[]string{"spec.kubernetes.manifests[1].name: Duplicate value"}},
		{"one-time", one(func(m *omni.Manifest) { m.Mode = omni.ManifestOneTime }), nil},
		{"unknown mode", one(func(m *omni.Manifest) { m.Mode = "once" }), []string{"spec.kubernetes.manifests[0].mode: Unsupported value"}},
		{"Omni's label and annotation", one(func(m *omni.Manifest) {
			m.Labels = map[string]string{"omni.sidero.dev/x": ""}
			m.Annotations = map[string]string{"omni.sidero.dev/y": ""}
		}), []string{
			"spec.kubernetes.manifests[0].labels[omni.sidero.dev/x]: Forbidden",
			"spec.kubernetes.manifests[0].annotations[omni.sidero.dev/y]: Forbidden",
		}},
		{"neither inline nor valueFrom", one(func(m *omni.Manifest) { m.Inline = nil }), []string{"spec.kubernetes.manifests[0]: Required value"}},
		{"empty inline", one(func(m *omni.Manifest) { m.Inline = []omni.FreeForm{} }), []string{"spec.kubernetes.manifests[0]: Required value"}},
		{"inline and valueFrom", one(func(m *omni.Manifest) { m.ValueFrom = source }), []string{"spec.kubernetes.manifests[0].valueFrom: Forbidden"}},
		{"bad valueFrom", one(func(m *omni.Manifest) { m.Inline, m.ValueFrom = nil, &omni.ValueSource{} }),
			[]string{"spec.kubernetes.manifests[0].valueFrom: Required value"}},
		{"largest", one(func(m *omni.Manifest) { m.Inline = []omni.FreeForm{half, half} }), nil},
		{"too large together", one(func(m *omni.Manifest) { m.Inline = []omni.FreeForm{half, half, object} }),
			[]string{"spec.kubernetes.manifests[0].inline: Invalid value"}},
	})
}

func TestValidateHealthchecks(t *testing.T) {
	job := freeForm(`{"apiVersion":"batch/v1","kind":"Job"}`)
	checks := func(list ...omni.Healthcheck) func(*omni.OmniCluster) {
		return func(c *omni.OmniCluster) { c.Spec.Kubernetes.Healthchecks = list }
	}

	checkRules(t, validCluster, ValidateOmniCluster, []row[omni.OmniCluster]{
		{"name and ID", checks(omni.Healthcheck{Name: "a", Job: job}, omni.Healthcheck{IDOverride: "b", Job: job}), nil},
		{"neither name nor ID", checks(omni.Healthcheck{Job: job}), []string{"spec.kubernetes.healthchecks[0].name: Required value"}},
		{"one name twice", checks(omni.Healthcheck{Name: "a", Job: job}, omni.Healthcheck{Name: "a", Job: job}),
			[]string{"spec.kubernetes.healthchecks[1].name: Duplicate value"}},
		{"one name twice, IDs differ", checks(omni.Healthcheck{Name: "a", IDOverride: "x", Job: job}, omni.Healthcheck{Name: "a", IDOverride: "y", Job: job}), nil},
		{"one ID twice", checks(omni.Healthcheck{Name: "a", IDOverride: "x", Job: job}, omni.Healthcheck{IDOverride: "x", Job: job}),
			[]string{"spec.kubernetes.healthchecks[1].idOverride: Duplicate value"}},
		{"shortest interval", checks(omni.Healthcheck{Name: "a", Interval: "5s", Job: job}), nil},
		{"interval too short", checks(omni.Healthcheck{Name: "a", Interval: "4s", Job: job}), []string{"spec.kubernetes.healthchecks[0].interval: Invalid value"}},
		{"interval no duration", checks(omni.Healthcheck{Name: "a", Interval: "5", Job: job}), []string{"spec.kubernetes.healthchecks[0].interval: Invalid value"}},
		{"no job", checks(omni.Healthcheck{Name: "a"}), []string{"spec.kubernetes.healthchecks[0].job: Required value"}},
		{"largest job", checks(omni.Healthcheck{Name: "a", Job: bigObject(256 << 10)}), nil},
		{"job too large", checks(omni.Healthcheck{Name: "a", Job: bigObject(256<<10 + 1)}), []string{"spec.kubernetes.healthchecks[0].job: Invalid value"}},
		{"Omni's label and annotation", checks(omni.Healthcheck{
			Name: "a", Job: job, Labels: map[string]string{"omni.sidero.dev/x": ""}, Annotations: map[string]string{"omni.sidero.dev/y": ""},
		}), []string{
			"spec.kubernetes.healthchecks[0].labels[omni.sidero.dev/x]: Forbidden",
			"spec.kubernetes.healthchecks[0].annotations[omni.sidero.dev/y]: Forbidden",
		}},
	})
}
