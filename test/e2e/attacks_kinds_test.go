package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// attack takes memory, time or a program away from others if nothing holds it. It ends when the programs have said what
// they think of it.
type attack struct {
	name   string // as the threat model has it
	before string // what it took while there were no bounds
	run    func(*attacker)
}

var attacks = []attack{
	{"16 request bodies of 20,000 aliases", "9.9 GB for one", (*attacker).sendAliases},
	{"Helm values of aliases", "4.1 GB", (*attacker).valuesOfAliases},
	{"A kubeconfig of aliases", "5.4 GB", (*attacker).kubeconfigOfAliases},
	{"A template that prints a dictionary that holds itself", "the end of the process", (*attacker).printItself},
	{"A template that doubles a text 40 times", "gigabytes", (*attacker).callItself},
	{"A template that repeats a text up to 1.5 billion times, in five sizes at once", "the size of the text", (*attacker).repeat},
	{"A template without end", "a core for ever", (*attacker).loop},
	{"The first probe answered with a compressed bomb", "7.2 GB", (*attacker).answerWithBomb},
	{"A Helm record that is a bomb", "7.0 GB", (*attacker).recordBomb},
	{"An index of four million empty lists", "1.2 GB", (*attacker).indexBomb},
	{"A namespace filled with objects of 0.4 MB, then listed eight times at once", "11.4 GB", (*attacker).fillNamespace},
	{"An Omni that sends resources of 1 MB without end", "2.3 GB", (*attacker).flood},
	{"An index of a million versions", "", (*attacker).millionVersions},
	{"A server that replays signed requests to Omni", "", (*attacker).replaySignatures},
	{"Servers that send commands to a terminal", "", (*attacker).sendCommands},
}

const clustersPath = "/apis/omni.texashpc.com/v1alpha1/namespaces/tenant/omniclusters"

// send is one request to the API, past kubectl. It returns the status and the answer; or, with an answer that breaks off,
// the status 0 and why.
func (a *attacker) send(method, path, contentType, body string) (int, string) {
	a.t.Helper()

	config := a.stack().RESTConfig()
	config.QPS = -1

	return a.sendAs(config, method, path, contentType, body)
}

// sendAs is send for another user.
func (a *attacker) sendAs(config *rest.Config, method, path, contentType, body string) (int, string) {
	a.t.Helper()

	client, err := rest.HTTPClientFor(config)
	if err != nil {
		a.t.Fatal(err)
	}

	request, err := http.NewRequestWithContext(a.t.Context(), method, config.Host+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}

	request.Header.Set("Content-Type", contentType)

	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()

	// A list may be long; its end does not matter.
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
	}

	if err != nil {
		return 0, err.Error()
	}

	return response.StatusCode, string(answer)
}

// sendPatiently is send, again while the server asks to come later, as client libraries do it.
func (a *attacker) sendPatiently(method, path, contentType, body string) (int, string) {
	a.t.Helper()

	for {
		status, answer := a.send(method, path, contentType, body)
		if status != http.StatusTooManyRequests {
			return status, answer
		}

		select {
		case <-a.t.Context().Done():
			return status, answer
		case <-time.After(time.Second):
		}
	}
}

// eightAtOnce does the same eight times at the same time.
func eightAtOnce(do func()) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(do)
	}

	all.Wait()
}

// eachOf does something for each number, eight of them at the same time.
func eachOf(count int, do func(i int)) {
	var begun atomic.Int64

	eightAtOnce(func() {
		for i := begun.Add(1); i <= int64(count); i = begun.Add(1) {
			do(int(i - 1))
		}
	})
}

// people lets a group edit the namespace. Its users are ordinary ones, which priority and fairness weighs.
func (s *space) people() (group string) {
	s.t.Helper()

	group = "people-of-" + s.name
	s.run("create", "rolebinding", "people", "--clusterrole=edit", "--group="+group)

	return group
}

func (a *attacker) sendAliases() {
	body := clusterManifest("bomb") + "\n  " + strings.ReplaceAll(aliases("labels", 60<<10, 20_000), "\n", "\n  ")

	eightAtOnce(func() {
		for _, request := range []struct{ method, path, contentType string }{
			{http.MethodPost, clustersPath, "application/yaml"},
			{http.MethodPatch, clustersPath + "/bomb?fieldManager=a", "application/apply-patch+yaml"},
		} {
			if status, answer := a.sendPatiently(request.method, request.path, request.contentType, body); status != http.StatusBadRequest || !strings.Contains(answer, "alias") {
				a.t.Errorf("%s: %d %s", request.method, status, answer)
			}
		}
	})
}

func (a *attacker) valuesOfAliases() {
	a.run("create", "secret", "generic", "bomb-values", "--from-literal=values.yaml="+aliases("data", 35<<10, 12_000))
	a.apply(a.releaseOf("bomb-values", "1.0.0", "    valuesFrom: [{kind: Secret, name: bomb-values, key: values.yaml}]"))
	a.refusedForGood("ohr", "bomb-values", "bomb-values")
}

func (a *attacker) kubeconfigOfAliases() {
	a.run("create", "secret", "generic", "bomb-kubeconfig", "--from-literal=kubeconfig="+aliases("users", 60<<10, 20_000))
	a.apply(a.syncOf("bomb-kubeconfig"))
	a.refusedForGood("oss", "bomb-kubeconfig", "bomb-kubeconfig")
}

// syncOf is an OmniSecretSync of the same name as the kubeconfig's Secret.
func (a *attacker) syncOf(kubeconfig string) string {
	return strings.NewReplacer("name: registry\nspec", "name: "+kubeconfig+"\nspec", "name: demo-kubeconfig", "name: "+kubeconfig).Replace(a.syncManifest(kubeconfig, "  deletionPolicy: Orphan"))
}

// render asks for a release of a chart with one template, and waits until it is refused with these words.
func (a *attacker) render(name, template string, words ...string) {
	a.addChart(name, template)
	a.release(name)
	a.refusedForGood("ohr", name, append(words, name)...)
}

func (a *attacker) addChart(name, template string) {
	a.charts.Add(chartserver.Chart{Name: name, Version: "1.0.0", Files: map[string]string{"templates/all.yaml": template}})
}

func (a *attacker) release(name string) {
	a.apply(strings.Replace(a.releaseOf(name, "1.0.0"), "chart: demo", "chart: "+name, 1))
}

// repeat makes texts of which the smallest is just beyond what a worker may take.
func (a *attacker) repeat() {
	sizes := []int{140, 300, 500, 800, 1500} // millions

	for _, size := range sizes {
		a.addChart(fmt.Sprintf("repeats-%d", size), fmt.Sprintf(`{{ repeat %d000000 "a" | len }}`, size))
	}

	for _, size := range sizes { // after all charts: an index that was read is fresh for a while
		a.release(fmt.Sprintf("repeats-%d", size))
	}

	for _, size := range sizes {
		a.refusedForGood("ohr", fmt.Sprintf("repeats-%d", size), "takes more than 128 MiB of memory")
	}
}

func (a *attacker) printItself() {
	a.render("prints-itself", `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}`)
}

func (a *attacker) callItself() {
	a.render("calls-itself", `{{ $x := "xxxxxxxxxxxxxxxx" }}{{ range until 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}{{ $x }}`)
}

func (a *attacker) loop() {
	a.render("without-end", `{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}`)
}

// zipped is a text that begins and goes on with the same piece, very often, compressed.
func zipped(begin, piece string, count int) []byte {
	var packed bytes.Buffer

	writer := gzip.NewWriter(&packed)
	_, _ = io.WriteString(writer, begin)

	many := strings.Repeat(piece, 1000)
	for range count / 1000 {
		_, _ = io.WriteString(writer, many)
	}

	_ = writer.Close()

	return packed.Bytes()
}

func (a *attacker) answerWithBomb() {
	bomb := zipped(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"1","managedFields":[{}`, ",{}", 20_000_000)

	a.apply(a.hostileCluster("bomb-cluster", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	}), a.syncOf("bomb-cluster"))
	a.t.Log(a.waitCondition("oss", "bomb-cluster", v1alpha1.ConditionConnected, metav1.ConditionFalse, v1alpha1.ReasonClusterUnreachable))
}

// hostileCluster is the kubeconfig's Secret of a server that answers all requests to a workload cluster.
func (a *attacker) hostileCluster(name string, answer http.HandlerFunc) string {
	server := httptest.NewTLSServer(answer)
	a.t.Cleanup(server.Close)

	return rawKubeconfigManifest(name, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: not-a-secret-but-long-enough}}]`, server.URL, base64.StdEncoding.EncodeToString(certificatePEM(server))))
}

func certificatePEM(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func (a *attacker) recordBomb() {
	bomb := zipped(`{"name":"bomb-record","version":1,"manifest":"`, "x", 600_000_000)

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.bomb-record.v1", Labels: map[string]string{
			"owner": "helm", "name": "bomb-record", "status": "deployed", "version": "1",
		}},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(bomb))},
	}

	if _, err := a.hub.Client().CoreV1().Secrets(a.apps).Create(a.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}

	// One attempt is all that there is to see; the pauses between more take minutes.
	a.apply(a.releaseOf("bomb-record", "1.0.0", "  takeOwnership: true", "  retries: 0"))
	a.t.Log(a.waitCondition("ohr", "bomb-record", v1alpha1.ConditionReady, metav1.ConditionFalse, ""))
	a.refusedForGood("ohr", "bomb-record", secret.Name)
}

func (a *attacker) indexBomb() {
	repository := chartserver.StartRepository()
	a.t.Cleanup(repository.Close)

	index := "apiVersion: v1\nentries:\n  demo: [" + strings.Repeat("[],", 4<<20) + "[]]\n"
	repository.Handle("/index.yaml", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, index) })

	a.apply(strings.Replace(a.releaseOf("bomb-index", "1.0.0"), a.charts.URL(), repository.URL(), 1))
	a.refusedForGood("ohr", "bomb-index", "index")
}

// fillNamespace makes clusters of 0.7 MB that nothing serves until no more are taken, and then lists them.
func (a *attacker) fillNamespace() {
	var full sync.Once

	refused := false
	body := func(i int) string {
		return fmt.Sprintf(`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"OmniCluster","metadata":{"name":"fill-%d","annotations":{"a":%q}},
"spec":{"suspend":true,"connectionRef":{"name":"none"},"kubernetes":{"version":"v1.35.1"},"talos":{"version":"v1.13.3"},
"patches":[{"name":"p","inline":{"machine":{"env":{"A":%q}}}}]}}`, i, strings.Repeat("a", 200<<10), strings.Repeat("b", 200<<10))
	}

	numbers := make(chan int)
	ended := make(chan struct{})

	go func() {
		defer close(numbers)

		for i := range 1000 {
			select {
			case numbers <- i:
			case <-ended:
				return
			}
		}
	}()

	eightAtOnce(func() {
		for i := range numbers {
			status, answer := a.sendPatiently(http.MethodPost, clustersPath, "application/json", body(i))

			switch {
			case status == http.StatusCreated:
			case strings.Contains(answer, storageSlow): // the next name is as good
			default:
				if status != http.StatusForbidden || !strings.Contains(answer, "exceeded quota") {
					a.t.Errorf("%d %s", status, answer)
				}

				full.Do(func() { a.t.Logf("refused after %d: %s", i, answer); refused = true; close(ended) })
			}
		}
	})

	if !refused {
		a.t.Error("there was room for all clusters")
	}

	// Lists wait for memory. On a busy machine some may wait or last longer than a request may take (60 s), and
	// kube-apiserver breaks those off that have begun.
	answers := []int{http.StatusOK, http.StatusTooManyRequests, http.StatusGatewayTimeout, 0}

	eightAtOnce(func() {
		status, answer := a.send(http.MethodGet, clustersPath, "", "")
		if !slices.Contains(answers, status) {
			a.t.Errorf("%d %s", status, answer)
		}

		a.t.Logf("a list ended with status %d", status)
	})
}

// flood connects to an Omni that sends resources of a megabyte each, without end.
func (a *attacker) flood() {
	omni, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		a.t.Fatal(err)
	}

	a.t.Cleanup(omni.Close)

	key, err := omni.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour)
	if err != nil {
		a.t.Fatal(err)
	}

	labels := map[string]string{}
	for i := range 8 {
		labels[strconv.Itoa(i)] = strings.Repeat("x", 128<<10)
	}

	a.t.Cleanup(omni.Flood("", func(number int) *cosiv1alpha1.WatchResponse {
		return &cosiv1alpha1.WatchResponse{Event: []*cosiv1alpha1.Event{{EventType: cosiv1alpha1.EventType_CREATED, Resource: &cosiv1alpha1.Resource{
			Metadata: &cosiv1alpha1.Metadata{
				Namespace: "default", Type: "Clusters.omni.sidero.dev", Id: strconv.Itoa(number), Version: "1", Phase: "running", Labels: labels,
			},
			Spec: &cosiv1alpha1.Spec{},
		}}}}
	}))

	a.apply(secretManifest("flood-key", key, omni.Endpoint()), connectionManifest("flood", omni.Endpoint(), "flood-key", string(omni.CAPEM())))
	a.refusedForGood("oconn", "flood", omni.Endpoint())
}
