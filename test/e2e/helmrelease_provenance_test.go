package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// A chart is installed only if a key of the keyring signed it, and stays deployed, but not Ready, when that key is withdrawn.
func TestHelmReleaseProvenance(t *testing.T) {
	t.Parallel()

	r := newReleasing(t)
	ours, other := chartserver.NewSigner("ours"), chartserver.NewSigner("other")
	verify := "    verify: {keyringSecretRef: {name: keys}}"

	r.trust(ours)
	r.apply(r.release(verify))
	r.waitUnverified("app")
	r.wantRecords("app")

	r.charts.AddFile("demo-1.0.0.tgz.prov", ours.Sign(chartserver.ConfigMapChart("demo", "1.0.0")))
	r.handled("ohr", "app", "signed")
	r.ready("ohr", "app")

	r.trust(other)
	r.waitUnverified("app")
	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})

	r.trust(ours)
	r.ready("ohr", "app")
	r.wantRecords("app", "1 deployed")

	if got := r.charts.Downloads(); got != 1 {
		t.Errorf("%d downloads, want 1", got)
	}
}

// trust makes this the signer whose key Secret keys holds.
func (r *releasing) trust(signer *chartserver.Signer) {
	r.t.Helper()
	r.apply(fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: keys}
data: {keyring: %s}`, base64.StdEncoding.EncodeToString(signer.PublicKey())))
}

func (r *releasing) waitUnverified(name string) {
	r.t.Helper()
	r.wait("the chart to be refused", func() error {
		stalled := apimeta.FindStatusCondition(r.status(name).Conditions, v1alpha1.ConditionStalled)
		if stalled == nil || stalled.Reason != v1alpha1.ReasonChartUnverified {
			return errors.New("not stalled for it")
		}

		return nil
	})
}
