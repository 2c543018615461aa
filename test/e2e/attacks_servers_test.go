package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/api/omni/specs"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// listener is a server of a tenant's own that poses as an Omni and keeps the headers of the signed requests that it gets, by method.
type listener struct {
	*httptest.Server

	mu     sync.Mutex
	signed map[string]metadata.MD
}

func (a *attacker) startListener() *listener {
	l := &listener{signed: map[string]metadata.MD{}}
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := metadata.MD{}

		for name, values := range r.Header {
			if name = strings.ToLower(name); !strings.HasPrefix(name, "grpc-") && !slices.Contains([]string{"content-type", "te", "user-agent"}, name) {
				headers[name] = values
			}
		}

		if len(headers.Get("x-sidero-signature")) > 0 {
			l.mu.Lock()
			l.signed[r.URL.Path] = headers
			l.mu.Unlock()
		}

		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", fmt.Sprint(int(codes.Unavailable)))
	}))
	l.EnableHTTP2 = true
	l.StartTLS()
	a.t.Cleanup(l.Close)

	return l
}

// requests are those that were signed, so far.
func (l *listener) requests() map[string]metadata.MD {
	l.mu.Lock()
	defer l.mu.Unlock()

	return maps.Clone(l.signed)
}

// replaySignatures has a key used with a server of the tenant's own. The key's Secret keeps every signature from it. If it allows
// that server, what the server gets is good for the same method, with any content, for five minutes, as the real Omni has it.
func (a *attacker) replaySignatures() {
	omni, err := omnisim.Start(omnisim.Options{})
	if err != nil {
		a.t.Fatal(err)
	}

	a.t.Cleanup(omni.Close)

	key, err := omni.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour)
	if err != nil {
		a.t.Fatal(err)
	}

	server := a.startListener()
	a.apply(secretManifest("replay-key", key, omni.Endpoint()), connectionManifest("replay", server.URL, "replay-key", string(certificatePEM(server.Server))))
	a.refusedForGood("oconn", "replay", "replay-key", "nothing was sent")

	if got := server.requests(); len(got) > 0 {
		a.t.Errorf("a server that the key's Secret does not allow got signatures: %v", slices.Sorted(maps.Keys(got)))
	}

	a.apply(secretManifest("replay-key", key, omni.Endpoint()+","+server.URL))
	a.wait("a signed request", func() error {
		if len(server.requests()) == 0 {
			return fmt.Errorf("none")
		}

		return nil
	})

	a.t.Logf("the methods that were signed: %v", slices.Sorted(maps.Keys(server.requests())))

	for signed, headers := range server.requests() {
		a.replay(omni, signed, headers)
	}
}

// replay sends the headers of a signed request again.
func (a *attacker) replay(omni *omnisim.Server, signed string, headers metadata.MD) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(omni.CAPEM())

	connection, err := grpc.NewClient(omni.Address(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots})))
	if err != nil {
		a.t.Fatal(err)
	}
	defer connection.Close()

	const other = "/cosi.resource.State/Destroy"

	accepted := func(method string, ahead time.Duration) bool {
		omni.SetClock(ahead)
		defer omni.SetClock(0)

		ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(a.t.Context(), headers), 5*time.Second)
		defer cancel()

		// A content that was not signed: the machine of somebody.
		content := &cosiv1alpha1.DestroyRequest{Namespace: "default", Type: "Machines.omni.sidero.dev", Id: "somebody's"}
		err := connection.Invoke(ctx, method, content, &cosiv1alpha1.DestroyResponse{})

		return status.Code(err) != codes.Unauthenticated
	}

	for _, test := range []struct {
		name, method string
		ahead        time.Duration
		want         bool
	}{
		{"at once", signed, 0, true},
		{"a second time", signed, 0, true},
		{"for another method", other, 0, false},
		{"six minutes later", signed, 6 * time.Minute, false},
	} {
		if got := accepted(test.method, test.ahead); got != test.want {
			a.t.Errorf("a signature for %s, %s: accepted %t, want %t", signed, test.name, got, test.want)
		}
	}
}

// millionVersions serves an index with a million versions of one chart, to a release of an exact version and to one of a range.
func (a *attacker) millionVersions() {
	repository := chartserver.StartRepository()
	a.t.Cleanup(repository.Close)
	repository.AddFile("demo-1.0.0.tgz", chartserver.ConfigMapChart("demo", "1.0.0").Pack())
	repository.Handle("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		index := bufio.NewWriter(w)
		_, _ = index.WriteString("apiVersion: v1\nentries:\n  demo:\n")

		for i := range 1_000_000 {
			_, _ = fmt.Fprintf(index, "  - urls:\n    - a\n    version: 1.0.%d\n", i)
		}

		_ = index.Flush()
	})

	for name, version := range map[string]string{"million-exact": "1.0.0", "million-range": `">=1.0.0 <2.0.0"`} {
		a.apply(strings.Replace(a.releaseOf(name, version), a.charts.URL(), repository.URL(), 1))
	}

	for _, name := range []string{"million-exact", "million-range"} {
		a.refusedForGood("ohr", name, "index")
	}
}

// commands are what a terminal, or whoever reads a line, would take for something else than text: a clipboard that is written (OSC 52),
// a link (OSC 8), colours in both forms of the introducer, a line that is written over, text that runs backwards, and what is not seen.
const commands = "bad\x1b]52;c;cm0=\x07\x1b]8;;http://example.com\x1b\\\u009b31m\rover\u202etxt.exe\u2066\u200b\u2028line\x7f\x00end"

// sendCommands has an Omni, a chart repository, charts and a workload cluster say all of that, and looks at every place in which a
// person reads what they said.
func (a *attacker) sendCommands() {
	r := releasingIn(deliveryIn(fleetIn(spaceOn(a.t, a.stack(), "commands"))))
	said := attackerIn(r)

	said.omniSaysCommands()
	said.chartsSayCommands()
	said.clusterSaysCommands()

	for name, text := range said.whatPeopleRead() {
		if slices.Contains([]string{"objects ocl", "objects ohr", "objects oss"}, name) && !strings.Contains(text, "txt.exe") {
			a.t.Errorf("%s: nothing of it is there, so nothing was shown", name)
		}

		for i, c := range text {
			if c != '\n' && c != '\t' && !unicode.IsGraphic(c) {
				a.t.Errorf("%s has %U: ...%q", name, c, text[max(0, i-200):min(len(text), i+60)])

				break
			}
		}
	}
}

// omniSaysCommands has an Omni say it as the ID of a machine, as the version and the step of an upgrade, and as a refusal.
func (a *attacker) omniSaysCommands() {
	ctx := a.t.Context()

	if _, err := a.omni.AddMachine(omnisim.Machine{ID: commands, Labels: map[string]string{"says": "commands"}}); err != nil {
		a.t.Fatal(err)
	}

	if err := a.omni.AddMachineClass("commands", "says = commands"); err != nil {
		a.t.Fatal(err)
	}

	a.apply(workersManifest("demo-commands", "demo", classOf("commands", 1)))
	a.waitMachines("demo", "demo-commands", 1)

	a.omni.Pause()

	upgrade, err := a.omni.Unchecked().Get(ctx, omnires.NewKubernetesUpgradeStatus("demo").Metadata())
	if err != nil {
		a.t.Fatal(err)
	}

	if _, err := safe.StateUpdateWithConflicts(ctx, a.omni.Unchecked(), upgrade.Metadata(), func(status *omnires.KubernetesUpgradeStatus) error {
		status.TypedSpec().Value = &specs.KubernetesUpgradeStatusSpec{
			Phase: specs.KubernetesUpgradeStatusSpec_Upgrading, Step: commands, Status: commands, LastUpgradeVersion: commands,
		}

		return nil
	}, state.WithUpdateOwner(upgrade.Metadata().Owner()), state.WithExpectedPhaseAny()); err != nil {
		a.t.Fatal(err)
	}

	a.wait("the upgrade", func() error {
		if upgrade := get[v1alpha1.OmniCluster](a.space, "ocl", "demo").Status.Omni.Upgrades.Kubernetes; upgrade == nil || !strings.Contains(upgrade.Version, "txt.exe") {
			return fmt.Errorf("%+v", upgrade)
		}

		return nil
	})

	a.omni.Inject(omnisim.Fault{Writes: true, Code: codes.InvalidArgument, Message: commands})
	a.demandOne(0)
	a.t.Log(a.waitCondition("ocl", demanded(0), v1alpha1.ConditionSynced, metav1.ConditionFalse, ""))
}

// chartsSayCommands has a repository say it as the text of a status, in the body of an error and in an index, and charts in their
// metadata, notes and names, and as why they fail.
func (a *attacker) chartsSayCommands() {
	for name, say := range map[string]http.HandlerFunc{
		"says-status": func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = fmt.Fprintf(connection, "HTTP/1.1 500 %s\r\nContent-Length: 0\r\n\r\n", commands)
				_ = connection.Close()
			}
		},
		"says-body": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, commands, http.StatusForbidden) },
		"says-index": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, "apiVersion: v1\nentries:\n  demo:\n  - name: demo\n    urls: [a]\n    version: %q\n", "2.0.0-"+commands)
		},
		"says-yaml": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, commands+": [") },
	} {
		repository := chartserver.StartRepository()
		a.t.Cleanup(repository.Close)
		repository.Handle("/index.yaml", say)
		a.apply(strings.Replace(a.releaseOf(name, "1.0.0"), a.charts.URL(), repository.URL(), 1))
	}

	a.addChart("says-failure", fmt.Sprintf("{{ fail %q }}", commands))
	a.addChart("says-name", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %q}", commands))
	a.addChart("says-yaml-of-its-own", fmt.Sprintf("{{ %q }}: [", commands))

	noted := chartserver.ConfigMapChart("says-notes", "1.0.0")
	noted.Files["templates/NOTES.txt"] = commands
	noted.Files["Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: says-notes\nversion: 1.0.0\nappVersion: %q\ndescription: %q\n", commands, commands)
	a.charts.Add(noted)

	for _, name := range []string{"says-failure", "says-name", "says-yaml-of-its-own", "says-notes"} {
		a.release(name)
	}

	for _, name := range []string{"says-status", "says-body", "says-index", "says-yaml", "says-failure", "says-name", "says-yaml-of-its-own"} {
		a.t.Log(name + ": " + a.waitCondition("ohr", name, v1alpha1.ConditionReady, metav1.ConditionFalse, ""))
	}

	a.says("ohr", "says-failure")
	a.ready("ohr", "says-notes")
}

// clusterSaysCommands has a workload cluster say it as why it refuses a request.
func (a *attacker) clusterSaysCommands() {
	refusal, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Message: commands, Reason: commands,
		Details: &metav1.StatusDetails{Name: commands, Kind: commands, Causes: []metav1.StatusCause{{Message: commands}}}, Code: http.StatusConflict,
	})
	if err != nil {
		a.t.Fatal(err)
	}

	a.apply(a.hostileCluster("says-refusal", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", "299 - \"\u202etxt.exe\"")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write(refusal)
	}), a.syncOf("says-refusal"))
	a.t.Log(a.waitCondition("oss", "says-refusal", v1alpha1.ConditionReady, metav1.ConditionFalse, ""))
	a.says("oss", "says-refusal")
}

// says waits until an object shows what was said.
func (a *attacker) says(resource, name string) {
	a.t.Helper()
	a.wait(name+" to show what was said", func() error {
		object, err := a.look(resource, name)
		if err == nil && !strings.Contains(string(object), "txt.exe") {
			err = errors.New("it does not")
		}

		return err
	})
}

// whatPeopleRead is the text of all places in which somebody reads about the objects of the namespace.
func (a *attacker) whatPeopleRead() map[string]string {
	texts := map[string]string{}
	read := func(name string, text []byte, err error) {
		if err != nil {
			a.t.Errorf("%s: %v", name, err)
		}

		texts[name] = string(text)
	}

	for short := range shortNames {
		for name, accept := range map[string]string{"objects ": "application/json", "columns ": "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			text, err := a.stack().Client().CoreV1().RESTClient().Get().AbsPath(a.listPath(short)).SetHeader("Accept", accept).Do(a.t.Context()).Raw()
			read(name+short, stringsOf(text), err)
		}
	}

	events, err := a.stack().Client().CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/" + a.name + "/events").Do(a.t.Context()).Raw()
	read("events", stringsOf(events), err)

	all := strings.Join(slices.Sorted(maps.Keys(shortNames)), ",")
	read("kubectl get", []byte(a.run("get", all, "-o", "wide")), nil)
	read("kubectl describe", []byte(a.run("describe", all)), nil)

	for name, path := range map[string]string{"omni-apiserver's log": a.stack().OmniAPIServer.LogPath(), "omni-controller's log": a.stack().Controller.LogPath()} {
		text, err := os.ReadFile(path)
		read(name, text, err)
	}

	metrics, err := a.stack().Controller.Metrics(a.t.Context())
	read("omni-controller's metrics", []byte(metrics), err)

	return texts
}

// stringsOf are all texts of a JSON object but those that its writer sent.
func stringsOf(object []byte) []byte {
	var (
		decoded any
		found   []string
		collect func(any)
	)

	_ = json.Unmarshal(object, &decoded)
	collect = func(value any) {
		switch value := value.(type) {
		case string:
			found = append(found, value)
		case []any:
			for _, item := range value {
				collect(item)
			}
		case map[string]any:
			for key, item := range value {
				found = append(found, key)

				if key != "spec" {
					collect(item)
				}
			}
		}
	}
	collect(decoded)

	return []byte(strings.Join(found, "\n"))
}

// Hooks that never end take all Helm actions that one namespace may have. Another tenant's release is installed meanwhile, and the
// timeout ends the hooks.
func TestAttackHooks(t *testing.T) {
	attackOnly(t)

	const clusters, releases = 4, 9 // each cluster has 8 slots, and a namespace 32

	hub := startAttacked(t)
	well := releasingIn(deliveryIn(fleetIn(spaceOn(t, hub, "well"))))
	tenant := tenantOn(t, hub)
	tenant.charts.Add(hookChart("1.4.0", "pre-install"))

	for i := range clusters {
		tenant.demandOne(i)
	}

	for i := range clusters {
		tenant.waitCondition("ocl", demanded(i), v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	check := watchPrograms(t, hub)

	for i := range clusters * releases {
		release := tenant.releaseOf(fmt.Sprintf("hangs-%d", i), "1.4.0", "  retries: 0", "  timeout: 2m")
		tenant.apply(strings.Replace(release, "clusterRef: {name: demo}", "clusterRef: {name: "+demanded(i%clusters)+"}", 1))
	}

	hanging := func() int {
		pods, err := tenant.delivery.hub.Client().CoreV1().Pods(tenant.apps).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}

		return len(pods.Items)
	}

	tenant.wait("as many hooks as a namespace may have actions", func() error {
		if got := hanging(); got < 32 {
			return fmt.Errorf("there are %d", got)
		}

		return nil
	})

	begun := time.Now()

	well.apply(well.release())
	well.ready("ohr", "app")
	t.Logf("the other tenant's release was installed within %s", time.Since(begun).Round(time.Millisecond))

	ended := 0
	for i := range clusters * releases {
		if stalled := apimeta.FindStatusCondition(tenant.status(fmt.Sprintf("hangs-%d", i)).Conditions, v1alpha1.ConditionStalled); stalled != nil {
			ended++
		}
	}

	if ended > 0 {
		t.Errorf("%d hooks had ended by then, so nothing was shown", ended)
	}

	tenant.refusedForGood("ohr", "hangs-0", "pre-install")
	check("36 releases whose hooks never end, of which 32 hold all actions of their namespace", "every action, until the hooks' timeout")
}
