package clusteraccess

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

func TestReadClaims(t *testing.T) {
	encode := func(payload string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}

	for _, test := range []struct {
		name, token, uuid string
		expires           time.Time
	}{
		{"token of Omni", encode(`{"cluster":"demo","cluster_uuid":"a-1","exp":1800000000}`), "a-1", time.Unix(1800000000, 0).UTC()},
		{"token of a ServiceAccount", encode(`{"sub":"system:serviceaccount:x:y"}`), "", time.Time{}},
		{"opaque", "abcdef", "", time.Time{}},
		{"no base64", "a.!.c", "", time.Time{}},
		{"no JSON", "a." + base64.RawURLEncoding.EncodeToString([]byte("x")) + ".c", "", time.Time{}},
		{"wrong types", encode(`{"cluster_uuid":7}`), "", time.Time{}},
		{"empty", "", "", time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := readClaims(test.token)
			if found.ClusterUUID != test.uuid || !found.expiry().Equal(test.expires) {
				t.Errorf("got %q, %v", found.ClusterUUID, found.expiry())
			}
		})
	}
}

func TestJudge(t *testing.T) {
	token, system, none := Identity{SourceToken, "A"}, Identity{SourceKubeSystem, "U"}, Identity{SourceNone, ""}

	for _, test := range []struct {
		name  string
		claim Claim
		right bool
		id    string
		says  string
	}{
		{"first look, the OmniCluster's", Claim{Found: token, OmniClusterID: "A"}, true, "A", "connected to cluster A"},
		// The token may be of any cluster: if a wrong kubeconfig were accepted now, the right one would be refused later.
		{"first look, OmniCluster's not known", Claim{Found: token}, false, "", "waiting for its ID"},
		{"first look, OmniCluster's not known, accepted", Claim{Found: token, Accept: "A"}, true, "A", "as accepted"},
		// The OmniCluster may have been made anew, for another cluster, while the kubeconfig still leads to the former one.
		{"the same as before, OmniCluster's not known", Claim{Found: token, Known: "A"}, false, "", "waiting for its ID"},
		{"the same as before, only observed", Claim{Found: token, Known: "A", Observed: true}, true, "A", "connected"},
		{"first look, only observed", Claim{Found: token, Observed: true}, false, "", "waiting for its ID"},
		{"another than before, OmniCluster's not known", Claim{Found: token, Known: "B"}, false, "", "before it was B"},
		{"kube-system, OmniCluster's not known", Claim{Found: system}, true, "U", "kube-system"},
		{"first look, another OmniCluster's", Claim{Found: token, OmniClusterID: "B"}, false, "", "accept-cluster: A"},
		{"the same as before", Claim{Found: token, OmniClusterID: "A", Known: "A"}, true, "A", "connected"},
		{"made again in Omni", Claim{Found: token, OmniClusterID: "A", Known: "old"}, false, "", "before it was old"},
		{"made again, accepted", Claim{Found: token, OmniClusterID: "A", Known: "old", Accept: "A"}, true, "A", "as accepted"},
		{"another one accepted", Claim{Found: token, OmniClusterID: "B", Known: "B", Accept: "C"}, false, "", "accept-cluster: A"},
		{"foreign, accepted", Claim{Found: token, OmniClusterID: "B", Accept: "A"}, true, "A", "as accepted"},
		{"old acceptance does no harm", Claim{Found: token, OmniClusterID: "A", Known: "A", Accept: "old"}, true, "A", "connected"},
		{"kube-system, first", Claim{Found: system, OmniClusterID: "A"}, true, "U", "kube-system"},
		{"kube-system, same", Claim{Found: system, Known: "U"}, true, "U", "kube-system"},
		{"kube-system, other", Claim{Found: system, Known: "V"}, false, "", "before it was V"},
		{"from token to kube-system", Claim{Found: system, Known: "A"}, false, "", "before it was A"},
		{"unknown, first", Claim{Found: none}, true, "", "was not checked"},
		{"unknown, known before", Claim{Found: none, Known: "A"}, false, "", "accept-cluster: none"},
		{"unknown, accepted", Claim{Found: none, Known: "A", Accept: AcceptNone}, true, "", "was not checked"},
		{"an empty acceptance accepts nothing", Claim{Found: token, Known: "B", Accept: ""}, false, "", "before it was B"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.claim.Judge()
			if waits := strings.Contains(test.says, "waiting"); got.Waits != waits || got.Right != test.right || got.ClusterID != test.id || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %+v, want right %v, ID %q, a message with %q", got, test.right, test.id, test.says)
			}
		})
	}
}

// TestJudgeWhileDeleting checks that no message advises to accept another cluster for an object that is being deleted:
// the objects to remove are not there.
func TestJudgeWhileDeleting(t *testing.T) {
	token, system, none := Identity{SourceToken, "A"}, Identity{SourceKubeSystem, "U"}, Identity{SourceNone, ""}

	for _, test := range []struct {
		name  string
		claim Claim
		says  string
	}{
		{"another OmniCluster's", Claim{Found: token, OmniClusterID: "B"}, `is for cluster A, the OmniCluster's is B; nothing is done there: put a kubeconfig of cluster B back into Secret "access"`},
		{"another than before", Claim{Found: token, OmniClusterID: "A", Known: "B"}, `before it was B; nothing is done there: put a kubeconfig of cluster B back into Secret "access"`},
		{"no token any more", Claim{Found: system, OmniClusterID: "A", Known: "A"}, `put a kubeconfig of cluster A back into Secret "access"`},
		{"kube-system, other", Claim{Found: system, Known: "V"}, `put a kubeconfig of cluster V back into Secret "access"`},
		{"unknown", Claim{Found: none, Known: "A"}, `put a kubeconfig of cluster A back into Secret "access"`},
		{"not known yet", Claim{Found: token}, "waiting for its ID"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.claim.Deleting = "access"

			if got := test.claim.Judge(); got.Right || !strings.Contains(got.Message, test.says) || strings.Contains(got.Message, "accept") {
				t.Errorf("got %+v, want a message with %q", got, test.says)
			}
		})
	}
}

func TestMoved(t *testing.T) {
	for _, test := range []struct{ before, now, want string }{
		{"", "B", ""},
		{"A", "A", ""},
		{"", "", ""},
		{"A", "B", "in cluster A: the object goes on in the cluster B,"},
		{"A", "", "in cluster A: the object goes on in the cluster whose ID is not known,"},
	} {
		if got := Moved(test.before, test.now); got == "" != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("from %q to %q: %q", test.before, test.now, got)
		}
	}
}

// An identity gets into statuses: one that is none is an error, and not the identity of a cluster that has none.
func TestHostileIdentity(t *testing.T) {
	for name, uid := range map[string]string{"long": strings.Repeat("u", 400<<10), "a bit long": strings.Repeat("u", 64), "two lines": `a\nb`} {
		t.Run(name, func(t *testing.T) {
			cluster := get(t, NewClusters(nil, loopback()), serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					respond(w, http.StatusOK, `{}`)

					return
				}

				respond(w, http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"`+uid+`"}}`)
			}))

			var (
				found Identity
				err   error
			)

			// The measurement includes the server's own text.
			foreigntest.WantAllocated(t, 16<<20, func() { found, err = identifyFinally(t, cluster) })

			if err == nil || found.ID != "" || !strings.Contains(cluster.Message(err), "UID") {
				t.Errorf("found %d bytes, %v", len(found.ID), err)
			}
		})
	}
}
