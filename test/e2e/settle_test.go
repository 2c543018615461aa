package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// What happens within the settle time. Edits that have to be over by then are plain requests, because a process of
// kubectl for each may take longer than that; and states that end with it are looked for in what was recorded.

// settleAttempts is how often edits may come too late.
const settleAttempts = 3

// endOfSettling finds when the changes that wait to settle begin, in the message that says so.
var endOfSettling = regexp.MustCompile(`begin at (\S+) if nothing changes before`)

// inFreshFleets runs a test whose edits have to be over within the settle time. If they were not, it has shown
// nothing, and begins again with a fleet of its own, in front of that version of Omni.
func inFreshFleets(t *testing.T, omniVersion string, test func(f *fleet)) {
	t.Helper()

	for attempt := range settleAttempts {
		suffix := ""
		if attempt > 0 {
			suffix = fmt.Sprintf("-again-%d", attempt)
		}

		f := fleetWith(newSpaceNamed(t, suffix), omnisim.Options{Phase: phase, OmniVersion: omniVersion})
		if test(f); !f.late {
			return
		}

		t.Logf("the edits were not over within the settle time of %s, which shows nothing", settleTime)
	}

	t.Fatalf("the edits were %d times not over within the settle time of %s", settleAttempts, settleTime)
}

// inTime makes edits, of which the last has to be made within the settle time of what the first one asks for, and
// tells whether it was. The settle time begins with the first plan, so if the edits wait for that (settles), what it
// says counts; else it is at least the settle time from now on.
func (f *fleet) inTime(edits func()) bool {
	f.t.Helper()

	f.ends = time.Now().Add(settleTime)

	edits()

	f.late = f.late || !time.Now().Before(f.ends)

	return !f.late
}

// ours is the administrator's client of a resource of ours.
func (s *space) ours(resource string) dynamic.ResourceInterface {
	s.t.Helper()

	return dynamicFor(s.t, s.stack().RESTConfig()).Resource(v1alpha1.SchemeGroupVersion.WithResource(resource)).Namespace(s.name)
}

// request asks for a look at an object of ours, by a token that its status repeats when that is over.
func (s *space) request(resource, name, token string) {
	s.t.Helper()

	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationReconcileRequestedAt, token)
	must(s.ours(shortNames[resource]).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))(s.t)
}

// handled asks for a look at an object of ours, and waits until it is over.
func (s *space) handled(resource, name, token string) {
	s.t.Helper()
	s.request(resource, name, token)
	s.waitShows("the request to be handled", resource, name, "{.status.lastHandledReconcileAt}", token)
}

// put makes objects of ours, or changes what the manifests say of those that are there. Unlike apply it reads nothing first,
// so edits follow one another as fast as they can.
func (s *space) put(manifests ...string) {
	s.t.Helper()

	for _, manifest := range manifests {
		body, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			s.t.Fatal(err)
		}

		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(body); err != nil {
			s.t.Fatal(err)
		}

		client := s.ours(strings.TrimSuffix(strings.ToLower(object.GetKind()), "s") + "s")

		_, err = client.Create(s.t.Context(), object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = client.Patch(s.t.Context(), object.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
		}

		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// remove deletes an object of ours, and does not wait until it is gone.
func (s *space) remove(resource, name string) {
	s.t.Helper()

	if err := s.ours(shortNames[resource]).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// watch records what becomes of an object of ours from now on, and tells the version that it has now.
func (s *space) watch(resource, name string) (events <-chan watch.Event, version string) {
	s.t.Helper()

	client, options := s.ours(shortNames[resource]), metav1.ListOptions{FieldSelector: "metadata.name=" + name}

	now := must(client.List(s.t.Context(), options))(s.t)
	if len(now.Items) != 1 {
		s.t.Fatalf("%s/%s: there are %d", resource, name, len(now.Items))
	}

	options.ResourceVersion = now.GetResourceVersion()

	open := must(client.Watch(s.t.Context(), options))(s.t)
	s.t.Cleanup(open.Stop)

	return open.ResultChan(), now.Items[0].GetResourceVersion()
}

// follow is watch for an OmniCluster of which settles tells.
func (f *fleet) follow(name string) {
	f.t.Helper()

	f.followed, _ = f.watch("ocl", name)
}

// settles waits until the OmniCluster that is followed has said, since the last look, that destroying changes wait
// to settle, and checks that the message names them.
func (f *fleet) settles(words ...string) {
	f.t.Helper()

	message, timeout := "", time.After(eventually)

	for message == "" {
		select {
		case event, open := <-f.followed:
			object, ok := event.Object.(*unstructured.Unstructured)
			if !open || !ok {
				f.t.Fatalf("the watch ended: %+v", event)
			}

			message = waitsToSettle(f.t, object)
		case <-timeout:
			f.t.Fatalf("nothing waits to settle (%v); the state is now: %s", stack.Controller.Crashed(), f.run("get", "ocl", "-o", "jsonpath={.items[*].status.conditions}"))
		}
	}

	f.t.Logf("%s: %s", v1alpha1.ReasonWaitingToSettle, message)

	if end := endOfSettling.FindStringSubmatch(message); end != nil {
		f.ends = must(time.Parse(time.RFC3339, end[1]))(f.t)
	}

	for _, word := range words {
		if !strings.Contains(message, word) {
			f.t.Errorf("the message does not say %q: %s", word, message)
		}
	}
}

// hesitate is settles, and a second more, in which a controller that did not wait would have destroyed. Whoever
// changes his mind does so after that.
func (f *fleet) hesitate(words ...string) {
	f.t.Helper()
	f.settles(words...)
	time.Sleep(time.Second)
}

// waitsToSettle is what an object says of what waits to settle, in a status of its current generation.
func waitsToSettle(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()

	var known anyKind
	if body, err := object.MarshalJSON(); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(body, &known); err != nil {
		t.Fatal(err)
	}

	for _, c := range known.Status.Conditions {
		if known.Status.ObservedGeneration == known.Generation && c.Type == v1alpha1.ConditionSynced &&
			c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonWaitingToSettle {
			return c.Message
		}
	}

	return ""
}
