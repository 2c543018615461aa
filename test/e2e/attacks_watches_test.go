package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	stormUsers, stormWatches = 5, 84 // of each user, through kube-apiserver
	stormDirect              = 40    // past it
	// kube-apiserver takes 4 MiB of an answer that nobody reads, and each object has 0.4 MB: so all watches are full by then.
	stormChanges, stormChanged = 300, 8
)

// Watches whose clients do not read, beside a store that is full, while large objects are changed: the server holds little for
// each, serves another tenant meanwhile, and ends them.
func TestAttackWatches(t *testing.T) {
	attackOnly(t)

	hub := startAttacked(t)
	well := fleetIn(spaceOn(t, hub, "well"))
	tenant := tenantOn(t, hub)

	well.demandOne(0)
	tenant.fillNamespace()

	check := watchPrograms(t, hub)
	times := watchRequests(t, well)
	before := tenant.openWatches()

	tenant.openUnread()

	opened := tenant.openWatches() - before
	if opened < stormUsers*stormWatches/4 {
		t.Errorf("%d watches are no storm", opened)
	}

	begun := time.Now()

	eachOf(stormChanges, func(i int) {
		path, body := fmt.Sprintf("%s/fill-%d", clustersPath, i%stormChanged), fmt.Sprintf(`{"metadata":{"labels":{"changed":"%d"}}}`, i)
		if status, answer := tenant.sendPatiently(http.MethodPatch, path, "application/merge-patch+json", body); status != http.StatusOK {
			t.Errorf("%d %s", status, answer)
		}
	})

	t.Logf("%d changes beside %d watches that nobody reads took %s", stormChanges, opened, time.Since(begun).Round(time.Second))
	well.serve(1)

	tenant.wait("watches that nobody reads to end", func() error {
		if left := tenant.openWatches() - before; left > opened/10 {
			return fmt.Errorf("%d of %d are left", left, opened)
		}

		return nil
	})

	times()
	check(fmt.Sprintf("%d watches that nobody reads, beside a full store in which objects of 0.4 MB are changed", stormUsers*stormWatches+stormDirect), "")
}

var openWatch = regexp.MustCompile(`^apiserver_longrunning_requests\{.*resource="omniclusters".*verb="WATCH".*\} (\d+)$`)

// openWatches is how many watches of OmniClusters the server has.
func (a *attacker) openWatches() int {
	a.t.Helper()

	server := a.stack().OmniAPIServer
	client := must(rest.HTTPClientFor(server.RESTConfig()))(a.t)
	response := must(client.Do(must(http.NewRequestWithContext(a.t.Context(), http.MethodGet, server.URL()+"/metrics", nil))(a.t)))(a.t)

	defer response.Body.Close()

	open := 0

	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if found := openWatch.FindStringSubmatch(lines.Text()); found != nil {
			var count int

			_, _ = fmt.Sscan(found[1], &count) // it is a number
			open += count
		}
	}

	return open
}

// unreadClient is a client that leaves answers in the kernel's buffers, which are small.
func unreadClient(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()

	return &http.Client{Transport: must(rest.HTTPWrappersForConfig(config, &http.Transport{
		TLSClientConfig: must(rest.TLSConfigFor(config))(t),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}

			return connection, connection.(*net.TCPConn).SetReadBuffer(4 << 10)
		},
	}))(t)}
}

// openUnread opens watches of several users, past kube-apiserver, too, and reads none of the answers. Half of them begin with all
// objects, the others with the next change, of all objects or of one.
func (a *attacker) openUnread() {
	a.t.Helper()

	group := a.people()
	account := a.stack().Client().CoreV1().ServiceAccounts(a.name)
	a.run("create", "rolebinding", "program", "--clusterrole=edit", "--serviceaccount="+a.name+":default")
	token := must(account.CreateToken(a.t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(a.t).Status.Token

	_, list := a.sendPatiently(http.MethodGet, clustersPath+"?limit=1", "", "")
	version := regexp.MustCompile(`"resourceVersion":"(\d+)"`).FindStringSubmatch(list)[1]

	var (
		opening sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]int{}
	)

	open := func(config *rest.Config, count int) {
		client := unreadClient(a.t, config)

		for i := range count {
			opening.Go(func() {
				query := []string{
					"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
					"&resourceVersion=0",
					"&resourceVersion=" + version,
					fmt.Sprintf("&resourceVersion=%s&fieldSelector=metadata.name%%3Dfill-%d", version, i%stormChanged),
				}[i%4]

				request, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, config.Host+clustersPath+"?watch=true"+query, nil)
				if err != nil {
					a.t.Error(err)

					return
				}

				answer := "none: the connection was closed"
				if response, err := client.Do(request); err == nil {
					answer = response.Status

					a.t.Cleanup(func() { _ = response.Body.Close() })
				}

				mu.Lock()
				defer mu.Unlock()
				answers[answer]++
			})
		}
	}

	for user := range stormUsers {
		open(must(a.stack().RESTConfigFor(fmt.Sprintf("watcher-%d", user), group))(a.t), stormWatches)
	}

	open(&rest.Config{
		Host: a.stack().OmniAPIServer.URL(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: a.stack().Hub.CA()},
	}, stormDirect)

	opening.Wait()
	a.t.Logf("answers to watches: %v", answers)
}
