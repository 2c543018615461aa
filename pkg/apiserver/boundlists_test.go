package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// TestMemoryOfTables: a table is encoded as a whole, so the server makes only as many at a time as there is memory
// for.
func TestMemoryOfTables(t *testing.T) {
	const objects, bytes = 16, 600_000

	times := foreigntest.AtOnce(8)

	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.ListBytes = int64(foreigntest.Load(8 << 20))
		config.ListsWaitFor(10 * time.Minute) // each waits for all before it, on any machine
	}))

	for i := range objects {
		s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, large(fmt.Sprintf("c%d", i)))
	}

	s.waitUntilCounted(t, objects)

	var length int64

	// Each table is larger than the bound and runs alone. All at once would take more than thirty times the length.
	foreigntest.WantPeak(t, 10*objects*bytes, func() { length = s.readAll(t, times, clusters+"?includeObject=Object&pretty=true", asTable) })

	if length < objects*int64(foreigntest.Load(bytes)) {
		t.Errorf("tables of %d bytes", length)
	}
}

// TestMemoryOfTemplates: a template of documents with many values takes hundreds of times their size, so the server makes only
// as many at a time as there is memory for.
func TestMemoryOfTemplates(t *testing.T) {
	const bound = 192 << 20 // one takes 90 MiB

	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.ListBytes = int64(foreigntest.Load(96 << 20))
		config.ListsWaitFor(10 * time.Minute)
	}))

	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, strings.ReplaceAll(withText("c", "", foreigntest.Load(45_000)), "1,", "[],"))
	s.mustCall(t, http.StatusCreated, http.MethodPost, strings.Replace(clusters, "omniclusters", "omnicontrolplanes", 1), asJSON,
		`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniControlPlane","metadata":{"name":"cp"},"spec":{"clusterRef":{"name":"c"},"machineClass":{"name":"m","size":1}}}`)
	s.waitUntilCounted(t, 1)

	foreigntest.WantPeak(t, bound, func() { s.readAll(t, foreigntest.AtOnce(8), clusters+"/c/template", "application/yaml") })
}

// TestTablesHaveNoWhiteSpace: neither another spelling of the header nor a subresource gets an indented table, which could
// take a hundred times the memory.
func TestTablesHaveNoWhiteSpace(t *testing.T) {
	for _, bytes := range []int64{8 << 20, 0} { // 0: no bound
		t.Run(strconv.FormatInt(bytes, 10), func(t *testing.T) { checkTables(t, bytes) })
	}
}

func checkTables(t *testing.T, listBytes int64) {
	t.Helper()

	s := startServer(t, withConfig(func(config *apiserver.Config) { config.ListBytes = listBytes }))
	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, large("c"))

	for _, path := range []string{"", "/c", "/c/status"} {
		for _, accept := range []string{
			asTable, "application/json;as =Table;v=v1;g=meta.k8s.io", "application/json;pretty =1;as=Table;v=v1;g=meta.k8s.io",
			"application/ yaml;as=Table;v=v1;g=meta.k8s.io",
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+clusters+path+"?pretty=true&includeObject=Object", nil)
			if err != nil {
				t.Fatal(err)
			}

			request.Header.Set("Accept", accept)

			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}

			body, err := io.ReadAll(response.Body)
			response.Body.Close()

			if err != nil || !bytes.Contains(body, []byte(`"kind":"Table"`)) || bytes.Contains(body, []byte("\n  ")) {
				t.Errorf("%q as %q: %v, %.200s", path, accept, err, body)
			}
		}
	}
}

// waitUntilCounted waits until the server has counted so many clusters.
func (s *server) waitUntilCounted(t *testing.T, clusters int64) {
	t.Helper()

	await.Until(t, "the objects are counted", func() bool { return s.ledger.Stored("omniclusters", "default").Objects == clusters })
}

// smallBuffers returns a transport whose connections buffer little of what the client does not read.
func smallBuffers() http.RoundTripper {
	return &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}

		return connection, connection.(*net.TCPConn).SetReadBuffer(4096)
	}}
}

// readNothing asks for a path, and reads nothing of the answer until the test ends.
func (s *server) readNothing(ctx context.Context, t *testing.T, path string) {
	t.Helper()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	response, err := smallBuffers().RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = response.Body.Close() })
}

// TestListsWait: lists wait for each other, and are refused after the timeout; all other requests go on.
func TestListsWait(t *testing.T) {
	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.ListBytes = int64(foreigntest.Load(1 << 20))
		config.ListsWaitFor(300 * time.Millisecond)
	}))

	for i := range 16 {
		s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, large(fmt.Sprintf("c%d", i)))
	}

	s.waitUntilCounted(t, 16)

	// A client that reads nothing of a list holds its room.
	slow, cancel := context.WithCancel(t.Context())
	defer cancel()

	s.readNothing(slow, t, clusters)

	status, body := s.get(t, clusters, asJSON)
	if status != http.StatusTooManyRequests || !strings.Contains(string(body), "--max-list-bytes-in-flight") {
		t.Errorf("a second list: status %d: %.300s", status, body)
	}

	if status, body := s.get(t, clusters+"/c1", asJSON); status != http.StatusOK {
		t.Errorf("get: status %d: %.300s", status, body)
	}

	s.mustCall(t, http.StatusCreated, http.MethodPost, clusters, asJSON, clusterJSON("small"))

	one := &metav1.PartialObjectMetadata{}
	if _, body := s.get(t, clusters+"/c1", asJSON); json.Unmarshal(body, one) != nil || one.ResourceVersion == "" {
		t.Fatalf("%.300s", body)
	}

	// A watch that goes on somewhere does not wait; one that begins with all objects is a list.
	for query, want := range map[string]int{
		"resourceVersion=" + one.ResourceVersion: http.StatusOK, "resourceVersion=0": http.StatusTooManyRequests, "": http.StatusTooManyRequests,
		"sendInitialEvents=yes&resourceVersionMatch=NotOlderThan": http.StatusTooManyRequests,
	} {
		if status, body := s.get(t, clusters+"?watch=1&timeoutSeconds=1&"+query, asJSON); status != want {
			t.Errorf("watch %s: status %d: %.300s", query, status, body)
		}
	}

	if status, body := s.call(t, http.MethodDelete, clusters+"?dryRun=All", asJSON, "{}"); status != http.StatusTooManyRequests {
		t.Errorf("delete all: status %d: %v", status, body["message"])
	}

	cancel()

	await.Until(t, "the room of the client that has gone", func() bool {
		status, _ := s.get(t, clusters, asJSON)

		return status == http.StatusOK
	})
}

// TestUnreadAnswersEnd: a client that reads nothing of a list, and does not go, gives its room back when its request has taken
// too long. Other requests of its connection go on.
func TestUnreadAnswersEnd(t *testing.T) {
	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.ListBytes = int64(foreigntest.Load(1 << 20))
		config.ListsWaitFor(100 * time.Millisecond)
		config.Generic.RequestTimeout = 4 * time.Second // its answer ends after five
	}))

	for i := range 16 {
		s.mustCreate(t, large(fmt.Sprintf("c%d", i)))
	}

	s.waitUntilCounted(t, 16)

	// A short answer ends in time on a busy machine, too.
	const short = clusters + "?limit=1"

	// If this is too slow to see the room that the client holds, another one begins.
	await.Until(t, "a client that reads nothing", func() bool {
		s.readNothing(t.Context(), t, clusters)

		status, _ := s.get(t, short, asJSON)

		return status == http.StatusTooManyRequests
	})
	await.Until(t, "the room of the client that reads nothing", func() bool {
		status, _ := s.get(t, short, asJSON)

		return status == http.StatusOK
	})

	// Longer than the deadline of the requests before, on the same connection.
	time.Sleep(6 * time.Second)

	if status, body := s.get(t, clusters+"/c1", asJSON); status != http.StatusOK {
		t.Errorf("get: status %d: %.300s", status, body)
	}
}

// TestUnreadWatchesEnd: a watch holds all objects of the kind as they were when it began, until its client has read the beginning.
// A client that reads nothing has as long for that as for a list, and holds a part of the budget meanwhile, over a WebSocket, too,
// and also if the watch has sent all it begins with.
func TestUnreadWatchesEnd(t *testing.T) {
	const (
		watch = clusters + "?watch=1&timeoutSeconds=3600"
		few   = 12 // as many as fit into the buffers of the watch, but not into those of the connection
		many  = 48
		short = clusters + "?limit=1"
	)

	s := startServer(t, withConfig(func(config *apiserver.Config) {
		config.ListBytes = 1 << 20
		config.ListsWaitFor(100 * time.Millisecond)
		config.Generic.RequestTimeout = 4 * time.Second // a write that nobody reads ends after five
	}))

	made := 0
	fill := func(objects int) {
		for ; made < objects; made++ {
			s.mustCreate(t, large(fmt.Sprintf("c%d", made)))
		}

		s.waitUntilCounted(t, int64(objects))
	}

	fill(few)

	// What a client has read takes no part of the budget any more, however long the watch goes on.
	names := s.watch(t, watch)
	for range few {
		<-names
	}

	for _, unread := range []struct {
		name    string
		objects int
		begin   func(ctx context.Context, t *testing.T, path string)
	}{
		{"few objects", few, s.readNothing}, {"many objects", many, s.readNothing}, {"a WebSocket", many, s.readNothingOfWebSocket},
	} {
		fill(unread.objects)
		await.Until(t, unread.name+": the watch", func() bool {
			unread.begin(t.Context(), t, watch)

			status, _ := s.get(t, short, asJSON)

			return status == http.StatusTooManyRequests
		})
		await.Until(t, unread.name+": the room of the client that reads nothing", func() bool {
			status, _ := s.get(t, short, asJSON)

			return status == http.StatusOK
		})
	}

	// The other watch is older than the deadline, and goes on.
	s.mustCreate(t, clusterJSON("late"))

	for range many - few {
		<-names
	}

	if name := <-names; name != "late" {
		t.Errorf("got %q", name)
	}
}

// mustCreate creates a cluster, with a server whose timeout is so short that a busy machine may exceed it.
func (s *server) mustCreate(t *testing.T, cluster string) {
	t.Helper()

	await.Until(t, "a cluster is created", func() bool {
		status, answer := s.call(t, http.MethodPost, clusters, asJSON, cluster)
		if status != http.StatusCreated && status != http.StatusConflict && status != http.StatusGatewayTimeout {
			t.Fatalf("status %d: %v", status, answer["message"])
		}

		return status != http.StatusGatewayTimeout
	})
}

// readNothingOfWebSocket is readNothing over a WebSocket.
func (s *server) readNothingOfWebSocket(ctx context.Context, t *testing.T, path string) {
	t.Helper()

	host := strings.TrimPrefix(s.url, "http://")

	connection, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = connection.Close() })

	if err := connection.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}

	fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", path, host, host)

	if line, err := bufio.NewReaderSize(connection, 16).ReadString('\n'); err != nil || !strings.Contains(line, "101") {
		t.Fatal(line, err)
	}
}

// watch begins a watch, reads it, and returns the names in its events. The channel is closed when the watch ends.
func (s *server) watch(t *testing.T, path string) <-chan string {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = response.Body.Close() })

	names := make(chan string, 1000)

	go func() {
		defer close(names)

		events := json.NewDecoder(response.Body)

		for {
			var event struct{ Object metav1.PartialObjectMetadata }
			if events.Decode(&event) != nil {
				return
			}

			names <- event.Object.Name
		}
	}()

	return names
}
