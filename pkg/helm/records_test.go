package helm_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// compressed is a text as Helm keeps it in a record.
func compressed(t testing.TB, text io.Reader) []byte {
	t.Helper()

	var zipped bytes.Buffer

	writer := gzip.NewWriter(&zipped)
	if _, err := io.Copy(writer, text); err != nil {
		t.Fatal(err)
	}

	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}

	return []byte(base64.StdEncoding.EncodeToString(zipped.Bytes()))
}

// clusterWith is a workload cluster that has one record, and notes what is asked of it.
type clusterWith struct {
	record []byte

	mu     sync.Mutex
	writes []string
}

// ServeHTTP implements http.Handler.
func (c *clusterWith) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet {
		c.mu.Lock()
		c.writes = append(c.writes, request.Method+" "+request.URL.Path)
		c.mu.Unlock()
	}

	answer := any(map[string]any{"kind": "Status", "code": http.StatusNotFound, "reason": "NotFound"})

	switch {
	case request.URL.Path == "/version":
		answer = map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
	case request.URL.Path == "/api":
		answer = &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case request.URL.Path == "/apis":
		answer = &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	case request.URL.Path == "/api/v1":
		answer = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"}
	case strings.HasSuffix(request.URL.Path, "/secrets/sh.helm.release.v1.demo.v2"):
		answer = &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.demo.v2", Namespace: "default"},
			Data: map[string][]byte{"release": c.record},
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
	}

	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// serve makes a cluster with one record, and what leads there.
func serve(t *testing.T, record []byte) (*rest.Config, *clusterWith) {
	t.Helper()

	cluster := &clusterWith{record: record}
	server := httptest.NewServer(cluster)
	t.Cleanup(server.Close)

	return &rest.Config{Host: server.URL}, cluster
}

func clientWith(t *testing.T, record []byte) (*helm.Client, *clusterWith) {
	t.Helper()

	config, cluster := serve(t, record)

	return helm.New(helm.Target{Config: config, Name: "demo", Namespace: "default"}, logr.Discard(), 0), cluster
}

// packed is a chart that nobody has refused.
type packed struct{ chartserver.Chart }

// String implements helm.Chart.
func (p packed) String() string { return p.Name + " " + p.Version }

// Archive implements helm.Chart.
func (p packed) Archive(context.Context) ([]byte, error) { return p.Pack(), nil }

// Accept implements helm.Chart.
func (packed) Accept(*chart.Metadata) error { return nil }

// Invalid implements helm.Chart.
func (packed) Invalid(why string) error { return errors.New(why) }

// hostileRecords are records that Helm must not see, and what is said about them.
func hostileRecords(t testing.TB) map[string]struct {
	record []byte
	want   string
} {
	t.Helper()

	inManifest := func(text string) []byte {
		whole, err := json.Marshal(map[string]any{"name": "demo", "version": 2, "info": map[string]any{}, "manifest": text})
		if err != nil {
			t.Fatal(err)
		}

		return compressed(t, bytes.NewReader(whole))
	}
	inHook := func(text string) []byte {
		whole, err := json.Marshal(map[string]any{"name": "demo", "version": 2, "info": map[string]any{}, "hooks": []any{map[string]any{"manifest": text}}})
		if err != nil {
			t.Fatal(err)
		}

		return compressed(t, bytes.NewReader(whole))
	}
	spaces := strings.Repeat(" ", 40<<20)

	return map[string]struct {
		record []byte
		want   string
	}{
		"a gzip bomb":                          {compressed(t, strings.NewReader(`{"name":"demo"`+spaces+`}`)), "is compressed and has more than 33554432 bytes when it is not"},
		"empty hooks":                          {compressed(t, strings.NewReader(`{"hooks":[`+strings.Repeat("{},", 400_000)+`{}]}`)), "has more than 200000 values"},
		"deep values":                          {compressed(t, strings.NewReader(`{"config":{"a":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+`}}`)), "is nested deeper than 200 levels"},
		"many values in a manifest":            {inManifest("a: [" + strings.Repeat("a,", 4<<20) + "]"), "has manifests of which at least one has more than 500000 values"},
		"aliases in a manifest":                {inManifest("kind: A\n---\n" + string(foreigntest.Doubled(20))), "has manifests of which at least one has more than 500000 values"},
		"aliases in a hook":                    {inHook(string(foreigntest.Aliased(60, 2000))), "has manifests of which at least one grows to more than"},
		"aliases behind a document of nothing": {inManifest("a: [\n---\n" + string(foreigntest.Doubled(20))), "has manifests of which at least one has more than 500000 values"},
		"aliases inside of a text for YAML":    {inManifest("a: |\n  b\n  ---\n" + strings.ReplaceAll(string(foreigntest.Doubled(20)), "a0: ", "a0: ")), "has manifests of which at least one"},
		"YAML with aliases":                    {compressed(t, bytes.NewReader(foreigntest.Aliased(30, 2000))), "is damaged"},
		"no base64":                            {[]byte("{}"), "is not base64"},
		"damaged gzip":                         {compressed(t, strings.NewReader(spaces))[:200], "its compression is damaged"},
		"a large record":                       {bytes.Repeat([]byte("a"), corev1.MaxSecretSize+1), "has more than 1048576 bytes"},
	}
}

func TestHostileRecords(t *testing.T) {
	foreigntest.Sequential(t)

	for name, test := range hostileRecords(t) {
		t.Run(name, func(t *testing.T) {
			client, cluster := clientWith(t, test.record)
			observed := helm.Observed{Revisions: []helm.Revision{{Number: 2, Status: helm.StatusDeployed}}}
			demo := packed{chartserver.ConfigMapChart("demo", "1.0.0")}

			attempts := map[string]func() error{
				"details": func() error {
					_, err := client.Details(t.Context(), 2)

					return err
				},
			}

			for _, action := range []helm.Action{helm.ActionUninstall, helm.ActionUpgrade, helm.ActionInstall, helm.ActionTest, helm.ActionRollback} {
				attempts[string(action)] = func() error {
					return client.Run(t.Context(), helm.Request{
						Decision: helm.Decision{Action: action, Revision: 2}, Chart: demo, Observed: &observed, Settings: helm.Settings{Timeout: time.Minute},
					})
				}
			}

			for what, attempt := range attempts {
				// Without the bounds the bomb took 353 MiB for 40; one of 1 MiB can hold 760.
				foreigntest.WantAllocated(t, 224<<20, func() {
					err := attempt()

					var failure *helm.Error
					if !errors.As(err, &failure) || failure.Reason != helm.ReasonRecord || !strings.Contains(failure.Message, test.want) ||
						!strings.Contains(failure.Message, "Secret sh.helm.release.v1.demo.v2 in namespace default") {
						t.Errorf("%s: %v, want %s", what, err, test.want)
					}
				})
			}

			if len(cluster.writes) > 0 {
				t.Errorf("written: %v", cluster.writes)
			}
		})
	}
}

// A real record is read as before, compressed or as former versions of Helm wrote it.
func TestRecordsWithinTheBounds(t *testing.T) {
	foreigntest.Sequential(t)

	text, err := json.Marshal(&releasev1.Release{
		Name: "demo", Namespace: "default", Version: 2, Info: &releasev1.Info{Status: common.StatusDeployed, Description: "fine"},
		Chart: &chart.Chart{
			Metadata: &chart.Metadata{APIVersion: "v2", Name: "demo", Version: "1.0.0"}, Values: map[string]any{"list": make([]any, 50_000)},
		},
		Manifest: strings.Repeat("# a large manifest\n", 200_000) + "---\na: &a [b]\nc: *a\n---\nnot: yaml: at all\n",
	})
	if err != nil {
		t.Fatal(err)
	}

	for name, record := range map[string][]byte{
		"compressed": compressed(t, bytes.NewReader(text)), "plain": []byte(base64.StdEncoding.EncodeToString([]byte(`{"version":2,"info":{"description":"fine"}}`))),
	} {
		client, _ := clientWith(t, record)

		for range 2 { // the place is given back
			if found, err := client.Details(t.Context(), 2); err != nil || found.Description != "fine" || found.Number != 2 {
				t.Errorf("%s: %v, %v", name, found, err)
			}
		}
	}
}

// What could not be read later is not written.
func TestARecordThatIsTooLargeIsNotWritten(t *testing.T) {
	foreigntest.Sequential(t)

	leads, cluster := serve(t, nil)

	clients, err := kubeclient.NewGetter(leads, "default")
	if err != nil {
		t.Fatal(err)
	}

	config := action.NewConfiguration()
	if err := config.Init(clients, "default", "secret"); err != nil {
		t.Fatal(err)
	}

	storage, err := helm.NewRecords(t.Context(), config, "default", nil)
	if err != nil {
		t.Fatal(err)
	}

	for name, write := range map[string]func(string, release.Releaser) error{"create": storage.Create, "update": storage.Update} {
		err := write("x", &releasev1.Release{
			Name: "demo", Version: 1, Info: &releasev1.Info{}, Manifest: strings.Repeat("a", 32<<20),
		})
		if err == nil || !strings.Contains(err.Error(), "the chart is too large") || !strings.Contains(err.Error(), "33554432 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if len(cluster.writes) > 0 {
		t.Errorf("written: %v", cluster.writes)
	}
}

func FuzzRecord(f *testing.F) {
	foreigntest.Sequential(f)

	for _, row := range hostileRecords(f) {
		if len(row.record) < 128<<10 {
			f.Add(row.record)
		}
	}

	f.Add(compressed(f, strings.NewReader(`{"name":"demo","version":1,"chart":{"metadata":{},"files":[{"data":"YQ=="}]},"config":{"a":[1]}}`)))

	f.Fuzz(func(t *testing.T, record []byte) {
		if len(record) > 128<<10 {
			return
		}

		client, _ := clientWith(t, record)

		foreigntest.WantAllocated(t, 256<<20, func() { _, _ = client.Details(t.Context(), 2) })
	})
}
