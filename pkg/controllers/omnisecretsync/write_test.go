package omnisecretsync

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// loopback lets connections to a server of the test through.
func loopback() dialguard.Guard {
	return dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// kubeconfigFor returns a kubeconfig for a server.
func kubeconfigFor(t *testing.T, handler http.HandlerFunc) []byte {
	t.Helper()

	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	return fmt.Appendf(nil, `current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: '%s', certificate-authority-data: %s}}]
users: [{name: it, user: {token: workload-token}}]`, server.URL, base64.StdEncoding.EncodeToString(ca))
}

// clusterAt makes a Cluster of a server.
func clusterAt(t *testing.T, handler http.HandlerFunc) *clusteraccess.Cluster {
	t.Helper()

	cluster, err := clusteraccess.NewClusters(nil, loopback()).Get(t.Context(), clusteraccess.Key{}, kubeconfigFor(t, handler))
	if err != nil {
		t.Fatal(err)
	}

	return cluster
}

// scopeOf is a run that found its source and its cluster, and wrote the target before.
func scopeOf(t *testing.T, cluster *clusteraccess.Cluster) *scope {
	t.Helper()

	sync := &v1alpha1.OmniSecretSync{}
	sync.Namespace, sync.Name, sync.UID = "fleet", "pull", uid
	sync.Spec.TargetSecretRef = v1alpha1.NamespacedSecretReference{Namespace: "apps", Name: "pull"}
	sync.Status.Target = &v1alpha1.SyncedSecret{Namespace: "apps", Name: "pull", Hash: "h"}

	return &scope{sync: sync, want: wanted(t), opened: &clusteraccess.Opened{Cluster: cluster, Hubs: connected()}}
}

// A webhook in the workload cluster takes a label off whatever is written. Each run tries once, tells of
// nothing, and says the same: a status that changed would start the next run.
func TestWebhookMakesNoLoop(t *testing.T) {
	live, writes := written(t), 0
	live.APIVersion, live.Kind = "v1", "Secret"
	delete(live.Labels, "team")

	codec := serializer.NewCodecFactory(clientgoscheme.Scheme).UniversalDeserializer()
	cluster := clusterAt(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			writes++

			var body json.RawMessage
			if err := json.NewDecoder(r.Body).Decode(&body); err == nil {
				decoded, _, err := codec.Decode(body, nil, nil)
				if err != nil {
					t.Error(err)
				} else if secret, ok := decoded.(*corev1.Secret); ok && secret.Labels["team"] != "a" {
					t.Error("the label was not sent")
				}
			}
		}

		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_ = json.NewEncoder(w).Encode(live) // the client sees a short answer
	})

	recorder := events.NewFakeRecorder(10)
	r := newReconciler(nil, nil, recorder, Options{HubID: thisHub})

	var messages []string

	for range 2 {
		s := scopeOf(t, cluster)

		outcome, err := r.write(t.Context(), s)
		if err != nil || !outcome.Stalls() || outcome.Reason() != v1alpha1.ReasonRefused || s.wrote {
			t.Fatalf("got %+v, %v, wrote %v", outcome, err, s.wrote)
		}

		messages = append(messages, outcome.Message())
	}

	if writes != 2 || messages[0] != messages[1] || !strings.Contains(messages[0], "(labels)") || len(recorder.Events) != 0 {
		t.Errorf("%d writes, %d events, messages %q", writes, len(recorder.Events), messages)
	}
}

// refusing has no Secret and answers every write with a status.
func refusing(t *testing.T, code int, status string) *clusteraccess.Cluster {
	t.Helper()

	return clusterAt(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)

		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)

			return
		}

		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,%s}`, code, status)
	})
}

// A namespace that is being deleted answers as if a right was missing, and heals by itself.
func TestNamespaceIsBeingDeleted(t *testing.T) {
	cluster := refusing(t, http.StatusForbidden,
		`"reason":"Forbidden","message":"unable to create new content","details":{"causes":[{"reason":"NamespaceTerminating"}]}`)

	outcome, err := newReconciler(nil, nil, events.NewFakeRecorder(10), Options{HubID: thisHub}).write(t.Context(), scopeOf(t, cluster))
	if err != nil || outcome.Stalls() || outcome.Reason() != v1alpha1.ReasonNamespaceNotFound || !strings.Contains(outcome.Message(), "is being deleted") {
		t.Errorf("got %+v, %v", outcome, err)
	}
}

// What refuses the Secret quotes its value.
func TestRefusalShowsNoValue(t *testing.T) {
	cluster := refusing(t, http.StatusBadRequest, `"reason":"BadRequest","message":"denied: s3cret is too short"`)

	outcome, err := newReconciler(nil, nil, events.NewFakeRecorder(10), Options{HubID: thisHub}).write(t.Context(), scopeOf(t, cluster))
	if err != nil || outcome.Reason() != v1alpha1.ReasonRefused || strings.Contains(outcome.Message(), "s3cret") {
		t.Errorf("got %+v, %v", outcome, err)
	}
}

// A gateway before the cluster answers with the header that it was sent.
func TestEchoedTokenIsRemoved(t *testing.T) {
	cluster := clusterAt(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "upstream failed: "+r.Header.Get("Authorization"))
	})
	recorder := events.NewFakeRecorder(10)
	r := newReconciler(nil, nil, recorder, Options{HubID: thisHub, Access: &clusteraccess.Access{}, Now: func() time.Time { return time.Unix(3600, 0) }})

	said := map[string]string{}

	written, err := r.write(t.Context(), scopeOf(t, cluster))
	if said["write"] = written.Message(); err != nil {
		t.Fatal(err)
	}

	s := scopeOf(t, cluster)
	s.sync.DeletionTimestamp = &metav1.Time{Time: time.Unix(1800, 0)}

	blocked, err := r.cleanUp(t.Context(), s, cluster)
	if said["delete"] = blocked.Message(); err != nil || !blocked.Blocks() {
		t.Fatal(blocked, err)
	}

	s.sync.DeletionTimestamp = &metav1.Time{Time: time.Unix(-3600, 0)}
	r.options.Now = func() time.Time { return time.Unix(3600+180, 0) } // it was tried for long enough

	if given, err := r.cleanUp(t.Context(), s, cluster); err != nil || !given.Continues() {
		t.Fatal(given, err)
	}

	said["event"] = <-recorder.Events

	for where, text := range said {
		if strings.Contains(text, "workload-token") || !strings.Contains(text, "upstream failed: Bearer [removed]") {
			t.Errorf("%s: %s", where, text)
		}
	}
}

// A webhook of the workload cluster that refuses a deletion quotes the Secret, as it is and in base64.
func TestARefusedDeletionShowsNoValue(t *testing.T) {
	cluster := clusterAt(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"pull","namespace":"apps","uid":"1","resourceVersion":"1","labels":{%q:"uid-1",%q:%q}},`+
				`"data":{"password":"czNjcmV0LXZhbHVl"}}`, labelOwnerUID, labelHub, thisHub)

			return
		}

		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,`+
			`"message":"admission webhook denied: nobody deletes s3cret-value (czNjcmV0LXZhbHVl)"}`)
	})
	r := newReconciler(nil, nil, events.NewFakeRecorder(10), Options{HubID: thisHub, Access: &clusteraccess.Access{}, Now: func() time.Time { return time.Unix(3600, 0) }})

	s := scopeOf(t, cluster)
	s.sync.UID = "uid-1"
	s.sync.DeletionTimestamp = &metav1.Time{Time: time.Unix(1800, 0)}

	blocked, err := r.cleanUp(t.Context(), s, cluster)
	if err != nil || !blocked.Blocks() || !strings.Contains(blocked.Message(), "nobody deletes [removed]") {
		t.Errorf("%+v %v", blocked, err)
	}

	if text := blocked.Message(); strings.Contains(text, "s3cret") || strings.Contains(text, "czNjcmV0") {
		t.Error(text)
	}
}

// What refuses that a Secret is written over, or deleted to be made again, quotes what it held before and what it would hold.
func TestARefusedWriteShowsNoFormerValue(t *testing.T) {
	for name, test := range map[string]struct {
		method string // which is refused
		change func(s *scope, live *corev1.Secret)
	}{
		"rotated":      {http.MethodPut, func(*scope, *corev1.Secret) {}},
		"another type": {http.MethodDelete, func(_ *scope, live *corev1.Secret) { live.Type = corev1.SecretTypeBasicAuth }},
		"adopted":      {http.MethodPut, func(s *scope, live *corev1.Secret) { s.sync.Spec.Adopt, live.Labels = true, nil }},
		"adopted, of another type": {http.MethodDelete, func(s *scope, live *corev1.Secret) {
			s.sync.Spec.Adopt, live.Labels, live.Type = true, nil, corev1.SecretTypeBasicAuth
		}},
	} {
		t.Run(name, func(t *testing.T) {
			live, refused := written(t), ""
			live.APIVersion, live.Kind = "v1", "Secret"
			live.Data = map[string][]byte{"password": []byte("former-value"), "token": []byte("t0ken-of-before")}

			cluster := clusterAt(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", runtime.ContentTypeJSON)

				switch r.Method {
				case http.MethodGet:
					_ = json.NewEncoder(w).Encode(live) // the client sees a short answer
				case http.MethodPost: // the dry run before a Secret is made again
					w.WriteHeader(http.StatusConflict)
					fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`)
				default:
					refused = r.Method

					w.WriteHeader(http.StatusUnprocessableEntity)
					fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,`+
						`"message":"denied: nobody changes t0ken-of-before and former-value (Zm9ybWVyLXZhbHVl), to mer-value-42"}`)
				}
			})

			s := scopeOf(t, cluster)
			s.want.data = map[string][]byte{"password": []byte("mer-value-42")} // they have a part in common
			test.change(s, live)

			outcome, err := newReconciler(nil, nil, events.NewFakeRecorder(10), Options{HubID: thisHub}).write(t.Context(), s)
			if err != nil || outcome.Reason() != v1alpha1.ReasonRefused || refused != test.method {
				t.Fatalf("%s was refused: %+v, %v", refused, outcome, err)
			}

			if text := outcome.Message(); !strings.HasSuffix(text, "denied: nobody changes [removed] and [removed] ([removed]), to [removed]") {
				t.Error(text)
			}
		})
	}
}

// Nothing is said to be left behind where nothing was written.
func TestLeft(t *testing.T) {
	for _, test := range []struct {
		name, hash, reason, want string
	}{
		{"written", "h", v1alpha1.ReasonUpToDate, "Secret apps/pull stays in the workload cluster"},
		{"never confirmed", "", v1alpha1.ReasonClusterUnreachable, "may be left, its first write was not confirmed"},
		{"somebody else's", "", v1alpha1.ReasonForeignTarget, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			s := scopeOf(t, nil)
			s.sync.Status.Target.Hash = test.hash
			s.sync.Status.Conditions = conditions(test.reason)

			newReconciler(nil, nil, recorder, Options{HubID: thisHub}).announceLeft(s, writtenLocation(s.sync), "why")

			var got string

			select {
			case got = <-recorder.Events:
			default:
			}

			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A person leads the object to another cluster: what it wrote in the former one stays, and is told of once.
func TestSecretsAreLeftInTheFormerCluster(t *testing.T) {
	for name, note := range map[string]func(*scope){
		"synced":            func(s *scope) { s.synced = true },
		"about to write":    func(s *scope) { s.aboutToWrite, s.sync.Spec.TargetSecretRef.Name = true, "third" },
		"a place was freed": func(s *scope) { s.oldestRemoved = true },
		"deleted":           func(s *scope) { s.sync.DeletionTimestamp = &metav1.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			r := newReconciler(nil, nil, recorder, Options{HubID: thisHub})
			s := scopeOf(t, nil)
			s.opened.ClusterID = "A"
			s.sync.Status.ClusterID = "A"
			s.sync.Status.PendingTargets = []v1alpha1.SyncedSecret{{Namespace: "apps", Name: "second"}}
			s.sync.Status.Conditions = conditions(v1alpha1.ReasonUpToDate)

			r.report(t.Context(), &scope{sync: s.sync.DeepCopy(), want: s.want, opened: s.opened, synced: true})

			if len(recorder.Events) != 0 {
				t.Fatal(<-recorder.Events)
			}

			s.opened.ClusterID = "B"
			note(s)

			// A run that has not done anything yet leaves the status as it is.
			if name != "deleted" {
				r.report(t.Context(), &scope{sync: s.sync, opened: s.opened})
			}

			r.report(t.Context(), s)
			r.report(t.Context(), &scope{sync: s.sync, want: s.want, opened: s.opened, synced: true})

			if name == "about to write" && confirmed(s.sync, location{"apps", "pull"}) {
				t.Error("what was written in the former cluster counts in this one")
			}

			if len(recorder.Events) != 2 || s.sync.Status.ClusterID != "B" {
				t.Fatalf("%d events, cluster %s", len(recorder.Events), s.sync.Status.ClusterID)
			}

			for _, want := range []string{"Secret apps/second may be left", "Secret apps/pull stays"} {
				if got := <-recorder.Events; !strings.HasPrefix(got, "Warning LeftBehind "+want) ||
					!strings.Contains(got, " stays in cluster A: the object goes on in the cluster B") {
					t.Error(got)
				}
			}
		})
	}
}

func conditions(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionFalse, Reason: reason}}
}

// A user changes the labels of the copy, and the next run does not come to write it: the status observes that generation all the
// same. The run after it writes at once and blames nobody; if the labels are changed back then, somebody else did that.
func TestAChangeOfTheLabelsIsTheUsers(t *testing.T) {
	m := newMover(t)
	m.to("apps", "a")
	m.sync.Generation, m.sync.Status.ObservedGeneration = 1, 1
	m.settle()
	m.all()

	m.sync.Generation, m.store.forbidden = 2, "apps"
	m.run()
	m.sync.Status.ObservedGeneration, m.store.forbidden = 2, ""
	m.store.secrets["apps/a"].Labels["team"] = "the former one"

	if outcome := m.run(); !outcome.Continues() {
		t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
	}

	if told := m.all(); !strings.Contains(told, "Updated Updated Secret apps/a") {
		t.Errorf("events:\n%s", told)
	}

	m.store.secrets["apps/a"].Labels["team"] = "the former one"

	if outcome := m.run(); outcome.Reason() != v1alpha1.ReasonConflict || !strings.Contains(outcome.Message(), "(labels)") {
		t.Errorf("%s: %s", outcome.Reason(), outcome.Message())
	}
}

// Somebody changes the Secret back at once: the same content is written once a minute, and new content at once.
func TestRewritePause(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	r := newReconciler(nil, nil, nil, Options{HubID: thisHub, Now: func() time.Time { return now }})

	for _, test := range []struct {
		name   string
		ago    time.Duration // since the last write
		change func(*scope)
		want   time.Duration
	}{
		{"just written", 10 * time.Second, func(*scope) {}, 50 * time.Second},
		{"a minute ago", time.Minute, func(*scope) {}, 0},
		{"the source changed", time.Second, func(s *scope) { s.want.data = map[string][]byte{"new": nil} }, 0},
		{"the spec changed", time.Second, func(s *scope) { s.sync.Generation++ }, 0},
		{"asked for", time.Second, func(s *scope) { s.sync.Annotations = map[string]string{v1alpha1.AnnotationReconcileRequestedAt: "now"} }, 0},
		{"another place", time.Second, func(s *scope) { s.sync.Status.Target.Name = "former" }, 0},
		{"written in the future", -6 * time.Hour, func(*scope) {}, 0},
		{"never written", 0, func(s *scope) { s.sync.Status.LastSyncTime = nil }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scopeOf(t, nil)
			s.sync.Status.Target.Hash = s.want.hash()
			s.sync.Status.LastSyncTime = &metav1.Time{Time: now.Add(-test.ago)}
			test.change(s)

			if got := r.rewritePause(s, wantedLocation(s.sync)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
