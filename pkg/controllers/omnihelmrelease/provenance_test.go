package omnihelmrelease

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// verified wants the chart signed by a key of Secret keys.
func verified(r *v1alpha1.OmniHelmRelease) {
	r.Spec.Chart.Verify = &v1alpha1.HelmVerify{KeyringSecretRef: v1alpha1.SecretKeyReference{Name: "keys"}}
}

// trust makes these the signers whose keys Secret keys holds.
func (f *fixture) trust(signers ...*chartserver.Signer) {
	f.t.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keys"}, Data: map[string][]byte{v1alpha1.DefaultKeyringKey: {}}}
	for _, signer := range signers {
		secret.Data[v1alpha1.DefaultKeyringKey] = append(secret.Data[v1alpha1.DefaultKeyringKey], signer.PublicKey()...)
	}

	err := f.client.Create(f.t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = f.client.Update(f.t.Context(), secret)
	}

	if err != nil {
		f.t.Fatal(err)
	}
}

// sign publishes the provenance file of the chart.
func (f *fixture) sign(signer *chartserver.Signer) {
	f.charts.AddFile("demo-1.0.0.tgz.prov", signer.Sign(chartserver.ConfigMapChart("demo", "1.0.0")))
}

// wantUnverified wants the release stalled for its chart's provenance.
func (f *fixture) wantUnverified(words string) {
	f.t.Helper()
	f.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonChartUnverified)
	f.want(v1alpha1.ConditionReady, no, v1alpha1.ReasonChartUnverified)

	if message := f.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonChartUnverified); !strings.Contains(message, words) || !strings.Contains(message, "stays as it is") {
		f.t.Error(message)
	}
}

// wantUntouched wants the release as its install left it, from one download.
func (f *fixture) wantUntouched() {
	f.t.Helper()
	f.wantActions(helm.ActionInstall)

	if status := f.get().Status; status.Revision != 1 || status.ReleaseStatus != "deployed" || status.Failures != 0 {
		f.t.Errorf("status %+v", status)
	}

	if got := f.charts.Downloads(); got != 1 {
		f.t.Errorf("%d downloads, want 1", got)
	}
}

func TestOnlyASignedChartIsInstalled(t *testing.T) {
	ours, other := chartserver.NewSigner("ours"), chartserver.NewSigner("other")

	for name, test := range map[string]struct {
		signer *chartserver.Signer // nil: not signed
		words  string              // of the refusal; empty: accepted
	}{
		"signed":     {signer: ours},
		"not signed": {words: "no provenance file"},
		"wrong key":  {signer: other, words: "no valid signature of a key of verify.keyringSecretRef"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, verified)
			f.trust(ours)

			if test.signer != nil {
				f.sign(test.signer)
			}

			f.settle()

			if test.words == "" {
				f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
				f.wantActions(helm.ActionInstall)

				return
			}

			f.wantUnverified(test.words)
			f.wantActions()

			if got := f.charts.Downloads(); got != 0 {
				t.Errorf("%d downloads of a chart that is not trusted", got)
			}
		})
	}
}

// What is deployed already is checked, too, and nothing of it is touched.
func TestVerifyIsAddedToADeployedRelease(t *testing.T) {
	ours := chartserver.NewSigner("ours")
	f := newFixture(t)
	f.settle()
	f.trust(ours)
	f.edit(verified)
	f.settle()
	f.wantUnverified("no provenance file")
	f.wantUntouched()

	f.sign(ours)
	f.pass(10 * time.Minute)
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.wantUntouched()
}

func TestAKeyIsWithdrawn(t *testing.T) {
	ours, other := chartserver.NewSigner("ours"), chartserver.NewSigner("other")
	f := newFixture(t, verified)
	f.trust(ours, other)
	f.sign(ours)
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	f.trust(other)
	f.settle()
	f.wantUnverified("no valid signature of a key of verify.keyringSecretRef")
	f.wantUntouched()

	f.trust(other, ours)
	f.settle()
	f.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	f.wantUntouched()
}

// An idle release costs nothing, and a restart one provenance file.
func TestAVerifiedReleaseIsIdle(t *testing.T) {
	ours := chartserver.NewSigner("ours")
	f := newFixture(t, verified)
	f.trust(ours)
	f.sign(ours)
	f.settle()

	before := f.get()

	for range 3 {
		f.pass(time.Hour)
		f.run()
	}

	if got := f.provenances(); got != 1 {
		t.Errorf("%d requests for the provenance file, want 1: %v", got, f.charts.Requests())
	}

	f.restart()
	f.run()
	f.pass(time.Hour)
	f.run()

	if got := f.provenances(); got != 2 {
		t.Errorf("%d requests for the provenance file after a restart, want 2: %v", got, f.charts.Requests())
	}

	if after := f.get(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status was written again: %+v", after.Status)
	}

	f.wantUntouched()
}

func (f *fixture) provenances() int {
	return strings.Count(strings.Join(f.charts.Requests(), " "), ".prov 200")
}
