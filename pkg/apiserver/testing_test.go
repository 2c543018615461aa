package apiserver_test

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/pkg/registry/quota"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// server is the API server in this process: the real handler chain on a real etcd, without a hub, so
// without authentication, authorisation and the hub's admission.
type server struct {
	url    string
	client versioned.Interface
	// etcd is where the storage can be read past the server.
	etcd string
	// ledger counts what is stored.
	ledger *quota.Ledger
}

// settings are how a server is started.
type settings struct {
	directory string                // of the embedded etcd; empty: a new one
	etcd      []embeddedetcd.Option // of the embedded etcd
	endpoint  string                // of an etcd that runs, instead of the embedded one
	storage   []func(*genericoptions.EtcdOptions)
	config    []func(*apiserver.Config)
}

type setting func(*settings)

// onDirectory has the embedded etcd use a data directory, which may have data.
func onDirectory(dir string) setting { return func(s *settings) { s.directory = dir } }

// withEtcd starts the embedded etcd with options.
func withEtcd(options ...embeddedetcd.Option) setting {
	return func(s *settings) { s.etcd = append(s.etcd, options...) }
}

// onEtcd has the server reach an etcd that runs through its endpoint.
func onEtcd(endpoint string) setting { return func(s *settings) { s.endpoint = endpoint } }

// withStorage changes the options of the storage, such as its endpoint to a relay.
func withStorage(change func(*genericoptions.EtcdOptions)) setting {
	return func(s *settings) { s.storage = append(s.storage, change) }
}

// withConfig changes the server's configuration.
func withConfig(change func(*apiserver.Config)) setting {
	return func(s *settings) { s.config = append(s.config, change) }
}

// withSmallBodies is for requests whose texts are a part of the largest, as foreigntest.Load makes them: what the work for all
// requests may take is the same part of what it is, so that they wait for each other as the largest do.
func withSmallBodies() setting {
	return withConfig(func(config *apiserver.Config) { config.BodiesWithin(int64(foreigntest.Load(apiserver.BodiesBudget))) })
}

// startServer starts a server on an embedded etcd, which it calls directly, unless a setting says otherwise.
func startServer(t *testing.T, changes ...setting) *server {
	t.Helper()

	var with settings
	for _, change := range changes {
		change(&with)
	}

	if with.endpoint == "" {
		etcd := etcdtest.Start(t, cmp.Or(with.directory, t.TempDir()), with.etcd...)
		direct := func(config *apiserver.Config) { apiserver.StoreIn(&config.Generic.Config, etcd.Storage) }
		with.endpoint, with.config = etcd.Endpoint(), slices.Insert(with.config, 0, direct)
	}

	config, err := apiserver.NewConfig()
	if err != nil {
		t.Fatal(err)
	}

	config.Registry.RequireDeletionConfirmation = true
	applyOptions(t, config, with.endpoint, with.storage...)

	for _, change := range with.config {
		change(config)
	}

	made, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(made.Generic.Destroy)

	listener := httptest.NewUnstartedServer(asAdministrator(made.Generic.PrepareRun().Handler))
	listener.Config.ConnContext = bufferingLittle

	listener.Start()
	t.Cleanup(listener.Close)

	client, err := versioned.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}

	s := &server{url: listener.URL, client: client, etcd: with.endpoint, ledger: made.Ledger}
	s.waitForStorage(t)

	return s
}

// bufferingLittle bounds what the kernel keeps of an answer that nobody reads, which else is up to 4 MiB.
func bufferingLittle(ctx context.Context, connection net.Conn) context.Context {
	_ = connection.(*net.TCPConn).SetWriteBuffer(64 << 10) // if it fails, a test that needs it fails

	return ctx
}

func applyOptions(t *testing.T, config *apiserver.Config, endpoint string, changes ...func(*genericoptions.EtcdOptions)) {
	t.Helper()

	storage := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", config.StorageCodec()))
	storage.StorageConfig.Transport.ServerList = []string{endpoint}

	for _, change := range changes {
		change(storage)
	}

	generic := &config.Generic.Config

	if err := genericoptions.NewServerRunOptions().ApplyTo(generic); err != nil {
		t.Fatal(err)
	}

	// On a busy machine, requests that wait for each other take longer than the default. A stop waits as long for its clients.
	generic.RequestTimeout = 2 * await.Limit
	generic.ExternalAddress = "127.0.0.1:443"
	generic.LoopbackClientConfig = &rest.Config{Host: "127.0.0.1:443"}

	generic.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()

	if err := storage.ApplyTo(generic); err != nil {
		t.Fatal(err)
	}
}

// asAdministrator stands in for the front proxy's authentication.
func asAdministrator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		administrator := &user.DefaultInfo{Name: "administrator", Groups: []string{user.SystemPrivilegedGroup}}
		next.ServeHTTP(w, r.WithContext(genericapirequest.WithUser(r.Context(), administrator)))
	})
}

// waitForStorage waits until the watch caches are full.
func (s *server) waitForStorage(t *testing.T) {
	t.Helper()

	await.Until(t, "the watch caches are full", func() bool {
		status, body := s.get(t, "/readyz/watch-caches", "")
		if status == http.StatusNotFound {
			t.Fatalf("status %d: %s", status, body)
		}

		return status == http.StatusOK
	})
}

// get reads a path as the media type.
func (s *server) get(t *testing.T, path, accept string) (int, []byte) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	if accept != "" {
		request.Header.Set("Accept", accept)
	}

	return s.do(t, request)
}

func (s *server) do(t *testing.T, request *http.Request) (int, []byte) {
	t.Helper()

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return response.StatusCode, body
}
