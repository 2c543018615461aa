package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/jsonpath"
)

// What waits must not miss a state that does not last, so it follows an object, or looks many times a second. These looks are
// plain requests: a process of kubectl for each takes longer than some states do, and the time of every other test.

// shortNames are those of our kinds.
var shortNames = map[string]string{
	"oconn": "omniconnections", "ocl": "omniclusters", "ocp": "omnicontrolplanes", "ow": "omniworkers", "om": "omnimachines",
	"oke": "omnikubeconfigexports", "oss": "omnisecretsyncs", "ohr": "omnihelmreleases", "orp": "omnirolloutpolicies",
}

// listPath is where the objects of a kind are: of our kinds by their short names, of others in the singular.
func (s *space) listPath(resource string) string {
	s.t.Helper()

	if long, ours := shortNames[resource]; ours {
		return s.path(long)
	}

	switch resource {
	case "configmap", "secret":
		return "/api/v1/namespaces/" + s.name + "/" + resource + "s"
	case "rolebinding":
		return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + s.name + "/rolebindings"
	case "apiservice":
		return "/apis/apiregistration.k8s.io/v1/apiservices"
	default: // at a path that does not exist, everything is gone
		s.t.Fatalf("nobody has said where a %s is", resource)

		return ""
	}
}

// look reads an object as JSON, of a kind as listPath takes it.
func (s *space) look(resource, name string) ([]byte, error) {
	return s.stack().Client().CoreV1().RESTClient().Get().AbsPath(s.listPath(resource), name).Do(s.t.Context()).Raw()
}

// following is how long one watch of followObject lasts: a wait also looks at other things now and then.
const following = time.Second

// followObject looks at an object, and then at each of its changes for a while, until check returns nil; check gets the error of
// the look, too. A wait for one object polls this: a state comes to it at once, and for fewer requests than looks.
func followObject[T any](s *space, resource, name string, check func(object T, missing error) error) error {
	body, err := s.look(resource, name)
	if err != nil {
		var none T

		return check(none, err)
	}

	last := checkJSON(body, check)
	if last == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(s.t.Context(), following)
	defer cancel()

	changes, err := s.watchFrom(ctx, resource, body)
	if err != nil {
		return errors.Join(last, err)
	}
	defer changes.Close()

	for decoder := json.NewDecoder(changes); ; {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}

		if decoder.Decode(&event) != nil || event.Type != watch.Added && event.Type != watch.Modified {
			return last
		}

		if last = checkJSON(event.Object, check); last == nil {
			return nil
		}
	}
}

// watchFrom watches an object, from the state that was read.
func (s *space) watchFrom(ctx context.Context, resource string, state []byte) (io.ReadCloser, error) {
	var seen metav1.PartialObjectMetadata
	if err := json.Unmarshal(state, &seen); err != nil {
		return nil, err
	}

	options := &metav1.ListOptions{Watch: true, FieldSelector: "metadata.name=" + seen.Name, ResourceVersion: seen.ResourceVersion}

	return s.stack().Client().CoreV1().RESTClient().Get().AbsPath(s.listPath(resource)).VersionedParams(options, metav1.ParameterCodec).Stream(ctx)
}

func checkJSON[T any](body []byte, check func(object T, missing error) error) error {
	var object T
	if err := json.Unmarshal(body, &object); err != nil {
		return err
	}

	return check(object, nil)
}

// tryGet reads an object.
func tryGet[T any](s *space, resource, name string) (T, error) {
	var object T

	body, err := s.look(resource, name)
	if err != nil {
		return object, err
	}

	return object, json.Unmarshal(body, &object)
}

// get is tryGet for an object that has to be there.
func get[T any](s *space, resource, name string) T {
	s.t.Helper()

	object, err := tryGet[T](s, resource, name)
	if err != nil {
		s.t.Fatal(err)
	}

	return object
}

// shows compares one line of an object, by a path as `kubectl get -o jsonpath` takes it.
func (s *space) shows(resource, name, path, want string) error {
	body, err := s.look(resource, name)
	if err != nil {
		return err
	}

	return shows(body, path, want)
}

// waitShows waits until one line of an object is as shows compares it.
func (s *space) waitShows(what, resource, name, path, want string) {
	s.t.Helper()
	s.wait(what, func() error {
		return followObject(s, resource, name, func(object json.RawMessage, missing error) error {
			if missing != nil {
				return missing
			}

			return shows(object, path, want)
		})
	})
}

func shows(body []byte, path, want string) error {
	object := &unstructured.Unstructured{}
	line := jsonpath.New(path).AllowMissingKeys(true)

	if err := errors.Join(object.UnmarshalJSON(body), line.Parse(path)); err != nil {
		return err
	}

	var got bytes.Buffer
	if err := line.Execute(&got, object.Object); err != nil {
		return err
	}

	if got.String() != want {
		return fmt.Errorf("%q", got.String())
	}

	return nil
}

// waitGone waits until the object no longer exists.
func (s *space) waitGone(resource, name string) {
	s.t.Helper()

	s.wait(resource+"/"+name+" to be gone", func() error {
		return followObject(s, resource, name, func(object anyKind, missing error) error {
			if apierrors.IsNotFound(missing) {
				return nil
			}

			return errors.Join(missing, fmt.Errorf("still there: %s", describe(object.Status.Conditions)))
		})
	})
}

// notes are the texts of the events with this reason, about the object of this name or, without
// one, about any.
func (s *space) notes(name, reason string) ([]string, error) {
	events, err := s.stack().Client().CoreV1().Events(s.name).List(s.t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return nil, err
	}

	var notes []string

	for _, event := range events.Items {
		if name == "" || event.InvolvedObject.Name == name {
			notes = append(notes, event.Message)
		}
	}

	return notes, nil
}

// events is notes for a call that has to succeed.
func (s *space) events(name, reason string) []string {
	s.t.Helper()

	notes, err := s.notes(name, reason)
	if err != nil {
		s.t.Fatal(err)
	}

	return notes
}

// waitEvent waits for one event, about any object, with all of these texts in its note.
func (s *space) waitEvent(reason string, texts ...string) {
	s.t.Helper()

	s.wait("event "+reason, func() error {
		notes, err := s.notes("", reason)
		if err != nil {
			return err
		}

		for _, note := range notes {
			if containsAll(note, texts) {
				return nil
			}
		}

		return fmt.Errorf("events: %q", notes)
	})
}

// waitEvents waits until the events about an object that have a reason say, together, every one of the texts.
func (s *space) waitEvents(name, reason string, texts ...string) []string {
	s.t.Helper()

	var notes []string

	s.wait("events "+reason, func() (err error) {
		if notes, err = s.notes(name, reason); err != nil {
			return err
		}

		if all := strings.Join(notes, "\n"); !containsAll(all, texts) {
			return fmt.Errorf("no events say all of %q: %q", texts, notes)
		}

		return nil
	})

	return notes
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}

	return true
}
