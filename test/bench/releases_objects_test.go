package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBothSidesAreToldTheSame(t *testing.T) {
	w := wantedRelease{number: 7, workload: 3, repository: "http://127.0.0.1:1", namespace: "apps", interval: time.Minute}

	for name, test := range map[string]struct {
		object map[string]any
		want   string
	}{
		"ours": {ourRelease(w), `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniHelmRelease","metadata":{"name":"release-0007"},"spec":{
			"clusterRef":{"name":"workload-3"},"kubeconfigSecretRef":{"name":"workload-3"},"namespace":"apps","interval":"1m0s","wait":true,
			"chart":{"repository":"http://127.0.0.1:1","chart":"settings","version":"1.0.0"}}}`},
		"Flux": {fluxRelease(w), `{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"release-0007"},"spec":{
			"interval":"1m0s","releaseName":"release-0007","targetNamespace":"apps","storageNamespace":"apps",
			"kubeConfig":{"secretRef":{"name":"workload-3"}},
			"chart":{"spec":{"chart":"settings","version":"1.0.0","sourceRef":{"kind":"HelmRepository","name":"charts"}}}}}`},
		"Flux's repository": {fluxRepository("http://127.0.0.1:1", time.Minute), `{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"HelmRepository",
			"metadata":{"name":"charts"},"spec":{"url":"http://127.0.0.1:1","interval":"1m0s"}}`},
		"kubeconfig": {kubeconfigSecret("workload-3", "content"), `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"workload-3"},
			"stringData":{"kubeconfig":"content","value":"content"}}`},
	} {
		var got, want any
		if err := json.Unmarshal(encode(test.object), &got); err != nil {
			t.Fatal(err)
		}

		if err := json.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRestingClusterIsSuspended(t *testing.T) {
	cluster := restingCluster("workload-1")
	if spec := cluster["spec"].(map[string]any); spec["suspend"] != true || spec["connectionRef"] == nil {
		t.Errorf("%v", cluster)
	}
}

func TestObjectsPath(t *testing.T) {
	for want, got := range map[string]string{
		"/apis/helm.toolkit.fluxcd.io/v2/namespaces/flux-system/helmreleases":       objectsPath(fluxReleases(), "flux-system"),
		"/apis/omni.texashpc.com/v1alpha1/namespaces/releases/omnihelmreleases":     objectsPath(ourReleases(), "releases"),
		"/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/helmrepositories": objectsPath(fluxRepositories(), "flux-system"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
