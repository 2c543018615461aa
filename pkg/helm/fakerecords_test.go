package helm

import (
	"encoding/json"
	"net/http"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// refuse refuses a request as an API server does it.
func refuse(to http.ResponseWriter, refused *apierrors.StatusError) {
	refused.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}

	to.WriteHeader(int(refused.ErrStatus.Code))
	_ = json.NewEncoder(to).Encode(&refused.ErrStatus)
}

// add writes Helm's record of a revision.
func (f *fakeCluster) add(t *testing.T, record *releasev1.Release) {
	t.Helper()

	if err := f.records(t).Create(key(record.Name, record.Version), record); err != nil {
		t.Fatal(err)
	}
}

// read reads Helm's record of a revision.
func (f *fakeCluster) read(t *testing.T, version int) *releasev1.Release {
	t.Helper()

	found, err := f.records(t).Get(key("demo", version))
	if err != nil {
		t.Fatal(err)
	}

	return found.(*releasev1.Release)
}

func (f *fakeCluster) records(t *testing.T) driver.Driver {
	t.Helper()

	client, err := typedcorev1.NewForConfig(f.config())
	if err != nil {
		t.Fatal(err)
	}

	return driver.NewSecrets(client.Secrets("apps"))
}

// applied is the record of a revision that the server has applied.
func applied(version int, status common.Status, manifest string, config map[string]any) *releasev1.Release {
	return &releasev1.Release{
		Name: "demo", Namespace: "apps", Version: version, Manifest: manifest, Config: config,
		Info: &releasev1.Info{Status: status}, ApplyMethod: string(releasev1.ApplyMethodServerSideApply),
	}
}
