package omniconnection

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestAccess: the status says how people reach the clusters, and Omni is asked once.
func TestAccess(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Ready", "True", "Connected")
	f.run()

	want := v1alpha1.OmniAccess{KubernetesProxyURL: f.omni.KubernetesProxyURL(), OIDCIssuerURL: f.omni.OIDCIssuerURL(), Account: "omni"}
	if access := f.get().Status.Access; access == nil || *access != want {
		t.Errorf("%+v, want %+v", access, want)
	}

	if calls := f.omni.Requests()[omnisim.Request{Method: omnisim.MethodKubeconfigForPeople}]; calls != 1 {
		t.Errorf("%d calls for a kubeconfig", calls)
	}
}

// TestAccessRefused: an Omni that does not say so is used all the same, and not asked at every run.
func TestAccessRefused(t *testing.T) {
	asked := 0

	f := newFixture(t)
	f.omni.Inject(omnisim.Fault{Method: "Kubeconfig", Code: codes.Unimplemented, OnHit: func() { asked++ }})
	f.secret("key", f.key)
	f.expect("Ready", "True", "Connected")
	f.run()

	if access := f.get().Status.Access; access != nil || asked != 1 {
		t.Errorf("%+v after %d calls", access, asked)
	}
}

// TestAccessAfterSlowContents: the question has time of its own, however long the session took before it.
func TestAccessAfterSlowContents(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.omni.Inject(omnisim.Fault{Method: "Watch", Delay: reachTimeout + 200*time.Millisecond})
	f.secret("key", f.key)
	f.expect("Ready", "True", "Connected")

	if f.get().Status.Access == nil {
		t.Error("the status does not say how people reach the clusters")
	}
}

// TestAccessOfAnotherOmni: what the former Omni said is not told of the next one.
func TestAccessOfAnotherOmni(t *testing.T) {
	connection := &v1alpha1.OmniConnection{}
	connection.Status.Endpoint, connection.Status.Access = "https://a", &v1alpha1.OmniAccess{Account: "a"}

	report(t.Context(), &scope{connection: connection, endpoint: "https://a"})

	if connection.Status.Access == nil {
		t.Error("a run that learns nothing drops it")
	}

	report(t.Context(), &scope{connection: connection, endpoint: "https://b"})

	if connection.Status.Access != nil {
		t.Errorf("of another Omni: %+v", connection.Status.Access)
	}
}
