package durability

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/scheme"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	loadWriters, loadReaders, loadWatchers = 4, 3, 2
	// loadPause is between two requests of one client.
	loadPause = 15 * time.Millisecond
	// mostMessages bounds how many failures are kept in full.
	mostMessages = 10
)

// load is clients that write, read and watch through kube-apiserver until they are stopped. They never repeat a
// request: each failure counts.
type load struct {
	t       *testing.T
	config  *rest.Config
	stop    context.CancelFunc
	running sync.WaitGroup
	prefix  string // of the names of its objects; no other load has it
	always  string // an object that is there from before the load until after it

	mu       sync.Mutex
	requests map[string]int
	failures map[string]int
	hasty    int // failures of writes that the replicas had not kept waiting; see loadWriter
	messages []string
	kept     map[string]string // object: resourceVersion of its last acknowledged write
	doubtful map[string]bool   // objects whose last write failed: it may have taken place
}

func startLoad(t *testing.T, config *rest.Config) *load {
	t.Helper()

	ctx, stop := context.WithCancel(t.Context())
	l := &load{
		t: t, config: config, stop: stop, prefix: "load-" + rand.String(5) + "-",
		requests: map[string]int{}, failures: map[string]int{}, kept: map[string]string{}, doubtful: map[string]bool{},
	}

	l.makeAlways()

	for i := range loadWriters {
		w := &loadWriter{load: l, client: l.client(), prefix: fmt.Sprint(l.prefix, i)}
		l.running.Go(func() { w.write(ctx) })
	}

	for range loadReaders {
		client := l.client()
		l.running.Go(func() { l.read(ctx, client) })
	}

	for range loadWatchers {
		client := l.client()
		l.running.Go(func() { l.watch(ctx, client) })
	}

	return l
}

// makeAlways makes the object that readers look at. It is no part of the load: it is tried until it is there.
func (l *load) makeAlways() {
	l.t.Helper()

	l.always = l.prefix + "always"
	client := clientset(l.t, l.config).OmniWorkers(metav1.NamespaceDefault)

	if err := env.Eventually(l.t.Context(), eventually, "the object that readers look at", func(ctx context.Context) error {
		object, err := client.Create(ctx, newWorkers(l.always, 1), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // a try that failed took place
			object, err = client.Get(ctx, l.always, metav1.GetOptions{})
		}

		if err == nil {
			l.note(l.always, object, nil)
		}

		return err
	}); err != nil {
		l.t.Fatal(err)
	}
}

// client makes a client with nothing shared but the library's cache of connections.
func (l *load) client() rest.Interface {
	l.t.Helper()

	return clientset(l.t, l.config).RESTClient()
}

// end stops the clients and returns how many requests there were, and how many of them failed.
func (l *load) end() (requests, failures int) {
	l.t.Helper()
	l.stop()
	l.running.Wait()

	for _, count := range l.requests {
		requests += count
	}

	for _, count := range l.failures {
		failures += count
	}

	l.t.Logf("requests %v, failures %v", l.requests, l.failures)

	for _, message := range l.messages {
		l.t.Log(message)
	}

	return requests, failures
}

// do sends a request once and counts it.
func (l *load) do(ctx context.Context, verb string, request *rest.Request, into *v1alpha1.OmniWorkers) error {
	// Not the caller's context: what is under way when the load ends is let finish.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()

	begin := time.Now()
	result := request.MaxRetries(0).Do(sending)

	err := result.Error()
	if err == nil && into != nil {
		err = result.Into(into)
	}

	l.count(verb, begin, err)

	return err
}

func (l *load) count(verb string, begin time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.requests[verb]++

	if err == nil {
		return
	}

	l.failures[verb]++

	if len(l.messages) < mostMessages {
		l.messages = append(l.messages, fmt.Sprintf("%s: %s after %s: %v", begin.Format("15:04:05.000"), verb, time.Since(begin).Round(time.Millisecond), err))
	}
}

// note keeps what was acknowledged of an object.
func (l *load) note(name string, object *v1alpha1.OmniWorkers, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	switch {
	case err != nil:
		l.doubtful[name] = true
	case object == nil:
		delete(l.kept, name)
		delete(l.doubtful, name)
	default:
		l.kept[name] = object.ResourceVersion
		delete(l.doubtful, name)
	}
}

// read lists, with and without the cache, looks at a single object that is always there, and asks what is served.
func (l *load) read(ctx context.Context, client rest.Interface) {
	for i := 0; ctx.Err() == nil; i++ {
		request := namespaced(client.Get())

		switch i % 4 {
		case 0:
			_ = l.do(ctx, "list", request.Param("limit", "5"), nil) // counted
		case 1:
			_ = l.do(ctx, "list", request.Param("resourceVersion", "0"), nil)
		case 2:
			_ = l.do(ctx, "get", request.Name(l.always), nil)
		default:
			_ = l.do(ctx, "discover", client.Get().AbsPath("/apis/omni.texashpc.com/v1alpha1"), nil)
		}

		pause(ctx, loadPause)
	}
}

// watch watches from now on, again and again. A watch may end at any time, but a new one has to begin.
func (l *load) watch(ctx context.Context, client rest.Interface) {
	for ctx.Err() == nil {
		begin := time.Now()

		stream, err := namespaced(client.Get()).VersionedParams(&metav1.ListOptions{Watch: true}, scheme.ParameterCodec).MaxRetries(0).Watch(ctx)
		if ctx.Err() != nil {
			return
		}

		l.count("watch", begin, err)

		if err != nil {
			pause(ctx, loadPause)

			continue
		}

		for range stream.ResultChan() { //nolint:revive // what comes does not matter, only that it does
		}

		stream.Stop()
	}
}

func namespaced(request *rest.Request) *rest.Request {
	return request.Namespace(metav1.NamespaceDefault).Resource("omniworkers")
}

// lost compares what was acknowledged with what is there, after end.
func (l *load) lost(ctx context.Context) []string {
	l.t.Helper()

	var list *v1alpha1.OmniWorkersList

	if err := env.Eventually(ctx, eventually, "a list of what is there", func(ctx context.Context) (err error) {
		list, err = clientset(l.t, l.config).OmniWorkers(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})

		return err
	}); err != nil {
		l.t.Fatal(err)
	}

	found := map[string]string{}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].ResourceVersion
	}

	var wrong []string

	for _, name := range slices.Sorted(maps.Keys(l.kept)) {
		if !l.doubtful[name] && found[name] != l.kept[name] {
			wrong = append(wrong, fmt.Sprintf("%s: acknowledged %s, found %q", name, l.kept[name], found[name]))
		}

		delete(found, name)
	}

	for name, version := range found {
		if !l.doubtful[name] && strings.HasPrefix(name, l.prefix) {
			wrong = append(wrong, fmt.Sprintf("%s: deleted or never made, found %s", name, version))
		}
	}

	return wrong
}
