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
func (b *bench) trust(signers ...*chartserver.Signer) {
	b.t.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keys"}, Data: map[string][]byte{v1alpha1.DefaultKeyringKey: {}}}
	for _, signer := range signers {
		secret.Data[v1alpha1.DefaultKeyringKey] = append(secret.Data[v1alpha1.DefaultKeyringKey], signer.PublicKey()...)
	}

	err := b.client.Create(b.t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = b.client.Update(b.t.Context(), secret)
	}

	if err != nil {
		b.t.Fatal(err)
	}
}

// sign publishes the provenance file of the chart.
func (b *bench) sign(signer *chartserver.Signer) {
	b.charts.AddFile("demo-1.0.0.tgz.prov", signer.Sign(chartserver.ConfigMapChart("demo", "1.0.0")))
}

// wantUnverified wants the release stalled for its chart's provenance.
func (b *bench) wantUnverified(words string) {
	b.t.Helper()
	b.want(v1alpha1.ConditionChartFetched, no, v1alpha1.ReasonChartUnverified)
	b.want(v1alpha1.ConditionReady, no, v1alpha1.ReasonChartUnverified)

	if message := b.want(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonChartUnverified); !strings.Contains(message, words) || !strings.Contains(message, "stays as it is") {
		b.t.Error(message)
	}
}

// wantUntouched wants the release as its install left it, from one download.
func (b *bench) wantUntouched() {
	b.t.Helper()
	b.wantActions(helm.ActionInstall)

	if status := b.get().Status; status.Revision != 1 || status.ReleaseStatus != "deployed" || status.Failures != 0 {
		b.t.Errorf("status %+v", status)
	}

	if got := b.charts.Downloads(); got != 1 {
		b.t.Errorf("%d downloads, want 1", got)
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
			b := newBench(t, verified)
			b.trust(ours)

			if test.signer != nil {
				b.sign(test.signer)
			}

			b.settle()

			if test.words == "" {
				b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
				b.wantActions(helm.ActionInstall)

				return
			}

			b.wantUnverified(test.words)
			b.wantActions()

			if got := b.charts.Downloads(); got != 0 {
				t.Errorf("%d downloads of a chart that is not trusted", got)
			}
		})
	}
}

// What is deployed already is checked, too, and nothing of it is touched.
func TestVerifyIsAddedToADeployedRelease(t *testing.T) {
	ours := chartserver.NewSigner("ours")
	b := newBench(t)
	b.settle()
	b.trust(ours)
	b.edit(verified)
	b.settle()
	b.wantUnverified("no provenance file")
	b.wantUntouched()

	b.sign(ours)
	b.pass(10 * time.Minute)
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	b.wantUntouched()
}

func TestAKeyIsWithdrawn(t *testing.T) {
	ours, other := chartserver.NewSigner("ours"), chartserver.NewSigner("other")
	b := newBench(t, verified)
	b.trust(ours, other)
	b.sign(ours)
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)

	b.trust(other)
	b.settle()
	b.wantUnverified("no valid signature of a key of verify.keyringSecretRef")
	b.wantUntouched()

	b.trust(other, ours)
	b.settle()
	b.want(v1alpha1.ConditionReady, yes, v1alpha1.ReasonDeployed)
	b.wantUntouched()
}

// An idle release costs nothing, and a restart one provenance file.
func TestAVerifiedReleaseIsIdle(t *testing.T) {
	ours := chartserver.NewSigner("ours")
	b := newBench(t, verified)
	b.trust(ours)
	b.sign(ours)
	b.settle()

	before := b.get()

	for range 3 {
		b.pass(time.Hour)
		b.run()
	}

	if got := b.provenances(); got != 1 {
		t.Errorf("%d requests for the provenance file, want 1: %v", got, b.charts.Requests())
	}

	b.restart()
	b.run()
	b.pass(time.Hour)
	b.run()

	if got := b.provenances(); got != 2 {
		t.Errorf("%d requests for the provenance file after a restart, want 2: %v", got, b.charts.Requests())
	}

	if after := b.get(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status was written again: %+v", after.Status)
	}

	b.wantUntouched()
}

func (b *bench) provenances() int {
	return strings.Count(strings.Join(b.charts.Requests(), " "), ".prov 200")
}
