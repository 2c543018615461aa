package kubeclient

import (
	"errors"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
)

// Helm looks into the result of an update that failed. What may be removed is asked before anything is sent.
func TestAnUpdateWithoutAChoice(t *testing.T) {
	unknown := errors.New("whose it is cannot be told")
	guard := &Guard{Choose: func(kube.ResourceList) (kube.ResourceList, error) { return nil, unknown }}

	config := &action.Configuration{KubeClient: &kube.Client{}}
	if err := guard.Watch(config); err != nil {
		t.Fatal(err)
	}

	result, err := config.KubeClient.Update(nil, nil)
	if !errors.Is(err, unknown) || result == nil {
		t.Errorf("got %v, %v", result, err)
	}

	if _, ok := config.KubeClient.(kube.InterfaceWaitOptions); !ok {
		t.Error("the client has lost its options")
	}

	if err := guard.Watch(&action.Configuration{}); err == nil {
		t.Error("no client is not told of")
	}
}
