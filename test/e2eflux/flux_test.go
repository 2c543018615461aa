package e2eflux

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// sourceManifest is the OCIRepository of the desk's source; intervals are long, so that what happens
// in a test was asked for.
func (d *desk) sourceManifest() string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: platform
spec:
  interval: 1h
  insecure: true
  url: %s
  ref: {tag: latest}`, d.source.url())
}

// kustomizationManifest applies a directory of the source; extra lines of spec are indented by two.
func kustomizationManifest(name, extra string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: %[1]s
spec:
  interval: 1h
  retryInterval: 2s
  timeout: 2m
  prune: true
  path: ./%[1]s
  sourceRef: {kind: OCIRepository, name: platform}
%[2]s`, name, extra)
}

// push publishes the desk's files, lets Flux fetch them, as "flux reconcile source" does, and returns
// their revision.
func (d *desk) push() string {
	d.t.Helper()

	revision := d.source.push(d.files)

	if _, err := d.try("", "get", "ocirepository", "platform"); err == nil {
		d.run("annotate", "ocirepository", "platform", "reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano), "--overwrite")
	}

	return revision
}

// waitApplied waits until a Kustomization is Ready with this revision.
func (d *desk) waitApplied(name, revision string) {
	d.t.Helper()
	d.wait("Kustomization "+name+" to have applied "+revision[:20], func() error { return d.applied(name, revision) })
}

func (d *desk) applied(name, revision string) error {
	state, err := tryGet[object](d, "kustomization", name)
	if err != nil {
		return err
	}

	ready := meta.FindStatusCondition(state.Status.Conditions, "Ready")
	if ready == nil {
		return errors.New("no condition Ready")
	}

	if ready.Status != metav1.ConditionTrue || state.Status.LastAppliedRevision != revision {
		return fmt.Errorf("applied %q; Ready=%s %s: %s", state.Status.LastAppliedRevision, ready.Status, ready.Reason, ready.Message)
	}

	return nil
}

// readiness is one state of a Kustomization.
type readiness struct {
	revision string
	ready    metav1.Condition
}

// recorder keeps every state of a Kustomization that was ever seen.
type recorder struct {
	mu     sync.Mutex
	states []readiness
}

// record watches a Kustomization until the test ends.
func (d *desk) record(name string) *recorder {
	d.t.Helper()

	client, err := dynamic.NewForConfig(stack.RESTConfig())
	if err != nil {
		d.t.Fatal(err)
	}

	resource := schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}

	watcher, err := client.Resource(resource).Namespace(env.FluxNamespace).Watch(d.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		d.t.Fatal(err)
	}

	d.t.Cleanup(watcher.Stop)

	r := &recorder{}

	go func() {
		for event := range watcher.ResultChan() {
			if seen, ok := event.Object.(*unstructured.Unstructured); ok {
				r.add(seen)
			}
		}
	}()

	return r
}

func (r *recorder) add(seen *unstructured.Unstructured) {
	var state object

	data, err := seen.MarshalJSON()
	if err != nil || json.Unmarshal(data, &state) != nil {
		return
	}

	if ready := meta.FindStatusCondition(state.Status.Conditions, "Ready"); ready != nil {
		r.mu.Lock()
		defer r.mu.Unlock()

		r.states = append(r.states, readiness{state.Status.LastAppliedRevision, *ready})
	}
}

// failures are the messages with which it was not Ready, but for the wait for what it depends on.
func (r *recorder) failures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	var messages []string

	for _, state := range r.states {
		if state.ready.Status == metav1.ConditionFalse && state.ready.Reason != "DependencyNotReady" {
			messages = append(messages, state.ready.Reason+": "+state.ready.Message)
		}
	}

	return messages
}

// everReady reports whether it was Ready with a revision.
func (r *recorder) everReady(revision string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.ContainsFunc(r.states, func(state readiness) bool {
		return state.ready.Status == metav1.ConditionTrue && state.revision == revision
	})
}
