package kubeclient

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const ours = "omni-controller"

// entry is what a manager has applied.
func entry(manager, version, fields string) metav1.ManagedFieldsEntry {
	made := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
	}
	made.FieldsV1.SetRawBytes([]byte(fields))

	return made
}

// told are managed fields as texts.
func told(fields []metav1.ManagedFieldsEntry) []string {
	var texts []string
	for _, one := range fields {
		texts = append(texts, strings.TrimSpace(strings.Join([]string{one.Manager, string(one.Operation), one.Subresource, one.APIVersion, string(one.FieldsV1.GetRawBytes())}, " ")))
	}

	return texts
}

func TestJoinFields(t *testing.T) {
	status := entry("helm", "v1", `{"f:status":{}}`)
	status.Subresource = "status"

	update := entry("helm", "v1", `{"f:b":{}}`)
	update.Operation = metav1.ManagedFieldsOperationUpdate

	rest := []metav1.ManagedFieldsEntry{entry("argocd-controller", "v1", `{"f:a":{}}`), status, update}
	kept := told(rest)

	for name, test := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   []string // nil: they stay as they are
	}{
		"nobody's":        {nil, nil},
		"the release's":   {[]metav1.ManagedFieldsEntry{entry(ours, "v1", `{"f:a":{}}`)}, nil},
		"another's":       {[]metav1.ManagedFieldsEntry{entry("helm", "v1", `{"f:a":{}}`)}, []string{ours + ` Apply  v1 {"f:a":{}}`}},
		"two others'":     {[]metav1.ManagedFieldsEntry{entry("helm", "v1", `{"f:a":{}}`), entry("helm-controller", "v1", `{"f:b":{}}`)}, []string{ours + ` Apply  v1 {"f:a":{},"f:b":{}}`}},
		"in two versions": {[]metav1.ManagedFieldsEntry{entry("helm", "v1", `{"f:a":{}}`), entry(ours, "v2", `{"f:b":{}}`)}, []string{ours + ` Apply  v2 {"f:a":{},"f:b":{}}`}},
	} {
		fields := append(test.fields, rest...)

		got, changed, err := joinFields(fields, append(otherManagers(), ours), ours)
		if err != nil || changed != (test.want != nil) {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}

		want := told(fields)
		if changed {
			want = append(kept[:len(kept):len(kept)], test.want...)
		}

		if diff := cmp.Diff(want, told(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}

		if _, again, err := joinFields(got, append(otherManagers(), ours), ours); again || err != nil {
			t.Errorf("%s: changed again %v, %v", name, again, err)
		}
	}

	if _, _, err := joinFields([]metav1.ManagedFieldsEntry{entry("helm", "v1", `{"f:a":`)}, otherManagers(), ours); err == nil {
		t.Error("fields that cannot be read are lost without a word")
	}
}
