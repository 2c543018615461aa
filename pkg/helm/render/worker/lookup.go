package worker

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// lookup is the function of templates: it asks the parent. As in Helm, what does
// not exist is an empty object.
func (w *worker) lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	question := render.Question{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	for _, text := range []string{apiVersion, kind, namespace, name} {
		if len(text) > maxName {
			return map[string]any{}, errors.New("lookup: the name of a kind, a namespace or an object is too long")
		}
	}

	if err := w.send(render.KindQuestion, question); err != nil {
		return map[string]any{}, err
	}

	content, err := w.next(render.KindReply)
	if err != nil {
		return map[string]any{}, err
	}

	var reply render.Reply
	if err := json.Unmarshal(content, &reply); err != nil {
		return map[string]any{}, err
	}

	if reply.Error != "" {
		return map[string]any{}, errors.New(reply.Error)
	}

	if len(reply.Object) == 0 {
		return map[string]any{}, nil
	}

	// The members of a list get their kind, and numbers the types that Helm's client gives them.
	found, _, err := unstructured.UnstructuredJSONScheme.Decode(reply.Object, nil, nil)
	if err != nil {
		return map[string]any{}, err
	}

	object, ok := found.(runtime.Unstructured)
	if !ok {
		return map[string]any{}, errors.New("lookup: what was found is neither an object nor a list")
	}

	return object.UnstructuredContent(), nil
}

// maxName is longer than any name in Kubernetes, in bytes.
const maxName = 1 << 10
