package app

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// gitManagers are the field managers of the tools that apply what Git says, each with the labels and annotations that it writes
// on every object to know its own.
var gitManagers = map[string][]string{ //nolint:gochecknoglobals // a table
	"kustomize-controller": {"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"},
	"helm-controller": {
		"helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace",
		"app.kubernetes.io/managed-by", "meta.helm.sh/release-name", "meta.helm.sh/release-namespace",
	},
	"flux-operator":                       {"resourceset.fluxcd.controlplane.io/name", "resourceset.fluxcd.controlplane.io/namespace"},
	"argocd-controller":                   {"argocd.argoproj.io/tracking-id"},
	"argocd-application-controller":       nil, // client-side apply: no dry run takes anything out
	"kubectl-client-side-apply-by-argocd": nil,
}

// ownedByGit names the tool that applies a field from Git; empty if none does.
func ownedByGit(o metav1.Object, path ...string) string {
	if manager := gitManagerOf(o.GetManagedFields(), path...); manager != "" {
		return manager
	}

	if appliedLast(o, path...) {
		return gitManagerOf(o.GetManagedFields(), "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	}

	return ""
}

// appliedLast reports whether the last client-side apply set a field. If it set the value that was there, as a false that is
// always written, no manager owns the field.
func appliedLast(o metav1.Object, path ...string) bool {
	applied := map[string]any{}
	if json.Unmarshal([]byte(o.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &applied) != nil {
		return false
	}

	_, found, err := unstructured.NestedFieldNoCopy(applied, path...)

	return found && err == nil
}

// gitManagerOf names the tool of Git that owns a field; empty if none does.
func gitManagerOf(fields []metav1.ManagedFieldsEntry, path ...string) string {
	parts := make([]any, 0, len(path))
	for _, part := range path {
		parts = append(parts, part)
	}

	wanted := fieldpath.MakePathOrDie(parts...)

	for _, entry := range fields {
		if _, isGit := gitManagers[entry.Manager]; !isGit || entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}

		set := &fieldpath.Set{}
		if set.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString())) == nil && set.Has(wanted) {
			return entry.Manager
		}
	}

	return ""
}

// refuseIfGitOwns is an error that says what to commit, if Git owns a field. Whatever were written would be taken back at the
// tool's next look, or after it has already had its effect.
func refuseIfGitOwns(o object, kind string, value any, path ...string) error {
	manager := ownedByGit(o, path...)
	if manager == "" {
		return nil
	}

	text, err := json.Marshal(value)
	if err != nil {
		return err
	}

	return fmt.Errorf("%s of %s %q comes from Git (%s): commit it there instead:\n  %s: %s", strings.Join(path, "."), kind, o.GetName(), manager,
		strings.Join(path, "."), text)
}
