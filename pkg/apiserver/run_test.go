package apiserver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/admission/plugin"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/etcdtest"
)

const (
	watchDrain         = 2 * time.Second
	requestGracePeriod = time.Second
)

// running is a server that serves TLS, as the program does.
type running struct {
	client versioned.Interface
	// etcd is where the storage can be read past the server.
	etcd    string
	address string       // of its port
	posts   atomic.Int32 // that the server has begun with
	cancel  context.CancelFunc
	done    chan error
}

// runServer runs a server with changes to its storage options.
func runServer(t *testing.T, changes ...func(*genericoptions.EtcdOptions)) *running {
	t.Helper()

	return runServerWith(t, func(*apiserver.Config) {}, changes...)
}

// runServerWith runs a server with a change to its configuration, and others to its storage options.
func runServerWith(t *testing.T, change func(*apiserver.Config), changes ...func(*genericoptions.EtcdOptions)) *running {
	t.Helper()

	etcd := etcdtest.Start(t, t.TempDir())

	config, err := apiserver.NewConfig()
	if err != nil {
		t.Fatal(err)
	}

	applyOptions(t, config, etcd.Endpoint(), changes...)
	serveTLS(t, config)
	config.FinishWithin(requestGracePeriod)

	change(config)

	r := &running{etcd: etcd.Endpoint(), done: make(chan error, 1), address: config.Generic.SecureServing.Listener.Addr().String()}
	r.note(config)

	loopback := rest.CopyConfig(config.Generic.LoopbackClientConfig)
	loopback.QPS = -1

	server, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}

	if r.client, err = versioned.NewForConfig(loopback); err != nil {
		t.Fatal(err)
	}

	var ctx context.Context

	ctx, r.cancel = context.WithCancel(t.Context())

	go func() { r.done <- server.Run(ctx) }()

	t.Cleanup(func() { r.stop(t) })
	r.waitUntilReady(t)

	return r
}

// note counts POST requests that have reached the handlers: from then on a stop waits for them.
func (r *running) note(config *apiserver.Config) {
	generic := &config.Generic.Config
	build := generic.BuildHandlerChainFunc

	generic.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPost {
				r.posts.Add(1)
			}

			handler.ServeHTTP(w, request)
		}), c)
	}
}

// serveTLS listens on a free port with a certificate of its own, lets everybody be an administrator,
// and runs our admission plugin that reads through the loopback connection.
func serveTLS(t *testing.T, config *apiserver.Config) {
	t.Helper()

	generic := &config.Generic.Config
	generic.ShutdownWatchTerminationGracePeriod = watchDrain
	generic.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: "administrator"}}, true, nil
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	serving := genericoptions.NewSecureServingOptions().WithLoopback()
	serving.Listener = listener
	serving.BindAddress = net.ParseIP("127.0.0.1")
	serving.BindPort = listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory = t.TempDir()

	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{serving.BindAddress}); err != nil {
		t.Fatal(err)
	}

	generic.LoopbackClientConfig = nil
	if err := serving.ApplyToConfig(generic); err != nil {
		t.Fatal(err)
	}

	own, err := apiserver.AdmissionInitializer(generic, plugin.Choices{})
	if err != nil {
		t.Fatal(err)
	}

	plugin := plugin.NewClusterName()
	own.Initialize(plugin)
	generic.AdmissionControl = admission.NewChainHandler(plugin)
}

func (r *running) waitUntilReady(t *testing.T) {
	t.Helper()

	await.Until(t, "the server is ready", func() bool {
		return r.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error() == nil
	})
}

// stop ends the server; it can be called twice.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()

	select {
	case err, open := <-r.done:
		if err != nil {
			t.Error(err)
		}

		if open {
			close(r.done)
		}
	case <-time.After(await.Limit): // applyOptions lets a server wait for longer for a client
		t.Fatal("the server does not stop")
	}
}

func newCluster(name, clusterName string) *v1alpha1.OmniCluster {
	return &v1alpha1.OmniCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.OmniClusterSpec{
			ConnectionRef: v1alpha1.LocalObjectReference{Name: "main"},
			ClusterName:   clusterName,
			Kubernetes:    v1alpha1.OmniClusterKubernetes{Version: "v1.34.1"},
			Talos:         v1alpha1.OmniClusterTalos{Version: "v1.11.2"},
		},
	}
}

// TestDuplicateClusterName tests the whole path: the plugin sees the stored objects through the server's own TLS
// port.
func TestDuplicateClusterName(t *testing.T) {
	r := runServer(t)
	clusters := r.client.OmniV1alpha1().OmniClusters("default")

	if _, err := clusters.Create(t.Context(), newCluster("one", "production"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "the second of the same name is refused", func() bool {
		_, err := clusters.Create(t.Context(), newCluster("two", "production"), metav1.CreateOptions{DryRun: []string{"All"}})

		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), `OmniCluster "one" already claims it`)
	})
}

// TestStopEndsWatches: a client that watches does not hold up the stop, and its watch ends cleanly.
func TestStopEndsWatches(t *testing.T) {
	r := runServer(t)

	stream, err := r.client.OmniV1alpha1().OmniClusters("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	r.stop(t)

	if event := await.Receive(t, "the end of the watch", stream.ResultChan()); event.Type != "" {
		t.Errorf("event %+v", event)
	}
}

// TestStopEndsRequests: a client that sends half a body and then nothing does not delay the stop, and gets an answer.
func TestStopEndsRequests(t *testing.T) {
	r := runServer(t)

	before := r.posts.Load()
	reader, writer := io.Pipe()
	answer := make(chan error, 1)

	go func() {
		answer <- r.client.OmniV1alpha1().RESTClient().Post().Namespace("default").Resource("omniclusters").
			SetHeader("Content-Type", "application/json").Body(reader).Do(t.Context()).Error()
	}()

	if _, err := io.WriteString(writer, `{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster",`); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "the server begins with it", func() bool { return r.posts.Load() > before })

	begin := time.Now()
	r.stop(t)

	if took := time.Since(begin); took < requestGracePeriod {
		t.Errorf("the stop took %s", took)
	}

	if err := await.Receive(t, "the answer", answer); !apierrors.IsTimeout(err) {
		t.Errorf("the client got %v", err)
	}

	_ = writer.Close()
}
