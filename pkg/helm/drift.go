package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// Marks that Helm puts on every object of a release. They are not in the
// stored manifest, but applied together with it.
const (
	managedByLabel      = "app.kubernetes.io/managed-by"
	managedByHelm       = "Helm"
	releaseAnnotation   = "meta.helm.sh/release-name"
	namespaceAnnotation = "meta.helm.sh/release-namespace"
)

// maxDifferentPaths is how many paths of one object are named.
const maxDifferentPaths = 10

// Drift compares the stored manifest of a revision with the cluster, by
// server-side dry runs: what the server would change is what differs. Objects
// of hooks are not looked at. An object that cannot be compared does not keep the
// others from it: then there are differences and an error. Errors are *Error, or
// ErrRevisionGone.
func (c *Client) Drift(ctx context.Context, revision int, ignores []Ignore) ([]Difference, error) {
	return c.compare(ctx, revision, ignores, nil)
}

// Correct applies the objects again that Drift finds, and returns what was
// different. Ignored paths keep what stands there.
func (c *Client) Correct(ctx context.Context, revision int, ignores []Ignore) ([]Difference, error) {
	return c.compare(ctx, revision, ignores, applyObject)
}

// compare finds what differs; correct, if not nil, is done to each such object.
func (c *Client) compare(ctx context.Context, revision int, ignores []Ignore, correct func(*resource.Info, map[string]any, bool) (map[string]any, error)) ([]Difference, error) {
	record, err := c.record(ctx, revision)
	if err != nil {
		return nil, err
	}

	s, err := c.open(ctx, values.Values{})
	if err != nil {
		return nil, err
	}

	var (
		differences []Difference
		problems    []error
	)

	objects, err := s.config.KubeClient.Build(strings.NewReader(record.Manifest), false)
	if err != nil {
		failed := classify("read the manifest of the release", err, c.redactorFor(values.Values{}))
		if len(objects) == 0 || endsComparison(ctx, failed) {
			return nil, failed
		}

		// A kind that the cluster does not know any more, for example.
		problems = append(problems, failed)
	}

	for _, info := range objects {
		difference, err := c.compareObject(info, ignores, correct)
		if difference != nil {
			differences = append(differences, *difference)
		}

		if err == nil {
			continue
		}

		failed := classify("compare "+identify(info).String(), err, c.redactorFor(values.Values{}))
		if problems = append(problems, failed); endsComparison(ctx, failed) {
			break
		}
	}

	return differences, summed(problems)
}

// endsComparison reports whether the next object would fail in the same way, after
// a long wait.
func endsComparison(ctx context.Context, failed error) bool {
	var failure *Error
	if !errors.As(failed, &failure) {
		return true
	}

	return ctx.Err() != nil || failure.Reason == ReasonUnreachable || failure.Reason == ReasonTimeout || failure.Reason == ReasonInterrupted
}

// maxNamedProblems is how many objects that could not be compared are named.
const maxNamedProblems = 3

// summed makes one error of all; the last one tells why a comparison has ended.
func summed(problems []error) error {
	if len(problems) == 0 {
		return nil
	}

	var (
		texts   []string
		failure *Error
	)

	for i, problem := range problems {
		if i == maxNamedProblems {
			texts = append(texts, fmt.Sprintf("and %d more problems", len(problems)-i))

			break
		}

		texts = append(texts, problem.Error())
	}

	reason := ReasonFailed
	if errors.As(problems[len(problems)-1], &failure) {
		reason = failure.Reason
	}

	return &Error{Reason: reason, Message: strings.Join(texts, "; ")}
}

func (c *Client) compareObject(info *resource.Info, ignores []Ignore, correct func(*resource.Info, map[string]any, bool) (map[string]any, error)) (*Difference, error) {
	wanted, err := c.marked(info)
	if err != nil || info.Name == "" { // a generated name has no counterpart
		return nil, err
	}

	object := identify(info)
	ignored := pathsFor(object, ignores)

	live, err := getObject(info)
	if apierrors.IsNotFound(err) {
		if correct != nil {
			_, err = correct(info, wanted, false)
		} else {
			err = nil
		}

		return &Difference{Object: object, Missing: true}, err
	}

	if err != nil {
		return nil, err
	}

	for _, pointer := range ignored {
		copyPath(live, wanted, pointer)
	}

	result, err := applyObject(info, wanted, true)
	if err != nil {
		return nil, err
	}

	paths := diff(live, result, append(ignored, serverPaths()...))
	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // nothing differs, nothing failed
	}

	if correct != nil {
		if _, err := correct(info, wanted, false); err != nil {
			return nil, err
		}
	}

	if len(paths) > maxDifferentPaths {
		paths = append(paths[:maxDifferentPaths], fmt.Sprintf("and %d more", len(paths)-maxDifferentPaths))
	}

	return &Difference{Object: object, Paths: paths}, nil
}

func identify(info *resource.Info) Object {
	kind := info.Mapping.GroupVersionKind

	return Object{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: info.Namespace, Name: info.Name}
}

// marked is an object of the manifest as Helm applies it.
func (c *Client) marked(info *resource.Info) (map[string]any, error) {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("the object is not readable")
	}

	marked := object.DeepCopy()
	labels, annotations := marked.GetLabels(), marked.GetAnnotations()

	if labels == nil {
		labels = map[string]string{}
	}

	if annotations == nil {
		annotations = map[string]string{}
	}

	labels[managedByLabel] = managedByHelm
	annotations[releaseAnnotation], annotations[namespaceAnnotation] = c.target.Name, c.target.Namespace
	marked.SetLabels(labels)
	marked.SetAnnotations(annotations)

	return marked.Object, nil
}

func getObject(info *resource.Info) (map[string]any, error) {
	found, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
	if err != nil {
		return nil, err
	}

	return asMap(found)
}

// applyObject applies an object as the release does, or only asks what that would give.
func applyObject(info *resource.Info, object map[string]any, dryRun bool) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}

	force := true

	result, err := resource.NewHelper(info.Client, info.Mapping).DryRun(dryRun).WithFieldManager(FieldManager).
		WithFieldValidation(string(kube.FieldValidationDirectiveIgnore)).
		Patch(info.Namespace, info.Name, types.ApplyPatchType, data, &metav1.PatchOptions{Force: &force})
	if err != nil {
		return nil, err
	}

	return asMap(result)
}

func asMap(object any) (map[string]any, error) {
	typed, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the answer has the unknown type %T", object)
	}

	return typed.Object, nil
}
