package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// What waits looks many times a second, and must not miss a state that does not last. So these
// looks are plain requests; a process of kubectl for each takes longer than some states do, and
// the time of every other test.

// shortNames are those of our kinds.
var shortNames = map[string]string{
	"oconn": "omniconnections", "ocl": "omniclusters", "ocp": "omnicontrolplanes", "ow": "omniworkers", "om": "omnimachines",
	"oke": "omnikubeconfigexports", "oss": "omnisecretsyncs", "ohr": "omnihelmreleases", "orp": "omnirolloutpolicies",
}

// look reads an object as JSON: of our kinds by their short names, of others in the singular.
func (s *space) look(resource, name string) ([]byte, error) {
	path := "/api/v1/namespaces/" + s.name + "/" + resource + "s"

	if long, ours := shortNames[resource]; ours {
		path = s.path(long)
	} else if resource == "apiservice" {
		path = "/apis/apiregistration.k8s.io/v1/apiservices"
	}

	return s.stack().Client().CoreV1().RESTClient().Get().AbsPath(path, name).Do(s.t.Context()).Raw()
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
		object, err := tryGet[anyKind](s, resource, name)
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(err, fmt.Errorf("still there: %s", describe(object.Status.Conditions)))
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
