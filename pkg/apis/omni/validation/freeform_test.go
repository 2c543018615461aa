package validation

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestWarningsForNumbers(t *testing.T) {
	const advice = ": quote an integer of 2^63 or more: server-side apply rounds it"

	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"small numbers", `{"a":1048576,"b":-5,"c":9223372036854775807,"d":-9223372036854775808}`, nil},
		{"quoted, with fraction, with exponent", `{"a":"9223372036854775808","b":9223372036854775808.5,"c":1e300}`, nil},
		{"at 2^63", `{"a":9223372036854775808,"b":-9223372036854775809}`, []string{"spec.a" + advice, "spec.b" + advice}},
		{"far beyond", `{"a":123456789012345678901234567890}`, []string{"spec.a" + advice}},
		{"deep", `{"a":[{"b":[1,9223372036854775808]}],"c.d/e":{"":9223372036854775808}}`,
			[]string{"spec.a[0].b[1]" + advice, "spec[c.d/e][]" + advice}},
		{"many", `{"a":[9223372036854775808,9223372036854775808,9223372036854775808,9223372036854775808,9223372036854775808]}`, []string{
			"spec.a[0]" + advice, "spec.a[1]" + advice, "spec.a[2]" + advice, "spec: 2 more integers of 2^63 or more: quote them",
		}},
		{"long key", `{"` + strings.Repeat("k", 200) + `":9223372036854775808}`,
			[]string{"spec." + strings.Repeat("k", 49) + "..." + advice}},
		{"broken", `{"a":9223372036854775808,`, []string{"spec.a" + advice}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checkWarnings(t, warningsForNumbers(freeForm(tc.text), field.NewPath("spec")), tc.want)
		})
	}

	checkWarnings(t, warningsForNumbers(nil, field.NewPath("spec")), nil)
}

func TestWarningsForOmniCluster(t *testing.T) {
	const advice = ": quote an integer of 2^63 or more: server-side apply rounds it"

	cluster := validCluster()
	checkWarnings(t, WarningsForOmniCluster(cluster), nil)

	cluster.Spec.Patches = []v1alpha1.Patch{{}, {Inline: freeForm(`{"a":9223372036854775808}`)}}
	cluster.Spec.Kubernetes.Manifests = []v1alpha1.Manifest{{Inline: []v1alpha1.FreeForm{*freeForm(`{}`), *freeForm(`{"b":9223372036854775808}`)}}}
	cluster.Spec.Kubernetes.Healthchecks = []v1alpha1.Healthcheck{{Job: freeForm(`{"c":9223372036854775808}`)}}

	checkWarnings(t, WarningsForOmniCluster(cluster), []string{
		"spec.patches[1].inline.a" + advice,
		"spec.kubernetes.manifests[0].inline[1].b" + advice,
		"spec.kubernetes.healthchecks[0].job.c" + advice,
	})
}

// Flux deletes what it may not change, if it is told to force.
func TestWarningForForce(t *testing.T) {
	const advice = "metadata.annotations[kustomize.toolkit.fluxcd.io/force]: Flux deletes the cluster when an edit is refused; take it off"

	cluster := validCluster()
	cluster.Annotations = map[string]string{"kustomize.toolkit.fluxcd.io/force": "disabled"}
	checkWarnings(t, WarningsForOmniCluster(cluster), nil)

	cluster.Annotations = map[string]string{"kustomize.toolkit.fluxcd.io/force": "Enabled"}
	checkWarnings(t, WarningsForOmniCluster(cluster), []string{advice})

	// The deletion is refused, too.
	cluster.Spec.DeletePolicy.RequireConfirmation = new(true)
	checkWarnings(t, WarningsForOmniCluster(cluster), nil)
}

func TestWarningIsBounded(t *testing.T) {
	long := field.NewPath("spec").Key(strings.Repeat("k", 300))

	for _, message := range []string{"short", strings.Repeat("m", 110), strings.Repeat("m", 119), strings.Repeat("m", 500)} {
		if got := warning(long, message); len(got) != 120 {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}

	for cut := range 4 {
		if got := warning(field.NewPath(strings.Repeat("a", cut)+strings.Repeat("日本", 30)), "short"); !utf8.ValidString(got) || len(got) > 120 {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}

	if got := warning(field.NewPath("a"), "b"); got != "a: b" {
		t.Errorf("got %q", got)
	}
}

func TestFreeFormErrorNamesTheLimit(t *testing.T) {
	errs := validateFreeForm(field.NewPath("spec"), "split it", *bigObject(300 << 10))

	const want = "spec: Invalid value: has 300 KiB, at most 256 KiB fit: split it"
	if len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
}

func TestFreeFormDepthIsBounded(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"a":[`, levels/2) + strings.Repeat(`]}`, levels/2)
	}

	for _, tc := range []struct {
		name, text, want string
	}{
		{"at the limit", nested(128), ""},
		{"beyond", nested(130), "spec: Invalid value: is nested deeper than 128 levels: make it flatter"},
		{"side by side", `{"a":[` + strings.Repeat(`{},`, 500) + `{}]}`, ""},
		{"in text", `{"a":"` + strings.Repeat(`{[\"`, 500) + `"}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if errs := validateFreeForm(field.NewPath("spec"), "split it", *freeForm(tc.text)); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}

			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
