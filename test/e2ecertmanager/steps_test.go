package e2ecertmanager

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// steps are what happens, one after the other.
func steps() []step {
	return []step{
		{name: "renew the serving certificates", do: renewServing},
		{name: "delete the Secret of the serving certificate, files late", do: deleteServing},
		{name: "renew the authority with its key, files late", do: renewAuthority},
		{name: "delete the Secret of the authority (a new key), files late", do: newAuthority},
		{name: "after a leaked key, as documented", do: leakedKey},
		{name: "upgrade from the certificates of earlier charts", do: upgradeFromBefore},
		{name: "an issuer of the user's and back, files late", do: foreignIssuer},
		{
			name: "caBundle removed by hand", do: bundleRemoved,
			gap: "kube-apiserver trusts nobody until cainjector has written it again",
		},
		{
			name: "cainjector away while the authority changes", do: injectorAway,
			refuses: "kube-apiserver does not know the new authority; it keeps the connection that it has",
		},
		{
			name: "a new authority, with a cainjector that replaces, files late", do: replacingInjector,
			gap: "kube-apiserver trusts the new authority only, and the old one's certificate is served",
		},
		{
			name: "expired, nobody restarts", do: expired, stays: true,
			refuses: "the certificate is not valid any more; kube-apiserver keeps the connection that it has",
		},
		{
			name: "expired, and omni-apiserver restarted", do: expiredAndRestarted,
			gap: "kube-apiserver has to make a new connection",
		},
	}
}

func renewServing(t *testing.T, s *installation) {
	log := s.apiserverRuns.LogPath()
	from := said(t, log)

	for _, name := range []string{serving, metrics} {
		before := s.issued(t, name)
		s.renew(t, name)
		s.reissued(t, name, before)
	}

	s.served(t)
	s.metricsServed(t)
	s.logged(t, log, "Serving this certificate", from)

	if got := s.issued(t, serving).leaf.KeyUsage; got != x509.KeyUsageDigitalSignature {
		t.Errorf("the serving certificate is for %b", got)
	}

	if got := s.issued(t, authority).leaf.KeyUsage; got != x509.KeyUsageCertSign|x509.KeyUsageCRLSign {
		t.Errorf("the authority is for %b", got)
	}
}

func deleteServing(t *testing.T, s *installation) {
	s.kubelet.hold()
	s.deleteSecret(t, serving)
	s.more(t, 100)
	s.kubelet.release()
	s.served(t)
}

func renewAuthority(t *testing.T, s *installation) {
	before := s.issued(t, authority)

	s.kubelet.hold()
	s.renew(t, authority)

	now := s.reissued(t, authority, before)
	if !sameKey(before, now) {
		t.Error("the renewed authority has another key")
	}

	s.renewSigned(t)
	s.trusted(t)
	s.more(t, 100)
	s.kubelet.release()
	s.served(t)
}

func sameKey(a, b issued) bool {
	key, ok := a.leaf.PublicKey.(*ecdsa.PublicKey)

	return ok && key.Equal(b.leaf.PublicKey)
}

func newAuthority(t *testing.T, s *installation) {
	s.kubelet.hold()
	s.changeAuthority(t)
	s.trusted(t)
	s.more(t, 100)
	s.kubelet.release()
	s.served(t)
}

// changeAuthority makes a new authority with a new key, and a serving certificate by it.
func (s *installation) changeAuthority(t *testing.T) {
	t.Helper()

	before := s.issued(t, authority)
	s.deleteSecret(t, authority)

	if now := s.issued(t, authority); sameKey(before, now) {
		t.Error("the new authority has the key of the old one")
	}

	s.renewSigned(t)
}

// leakedKey runs the commands of the page.
func leakedKey(t *testing.T, s *installation) {
	page := filepath.Join(root, "docs/concepts/security.md")
	old := s.issued(t, serving)

	s.runShell(t, shellBlock(t, page, "kubectl delete secret omni-apiserver-ca"))
	s.served(t)
	s.metricsServed(t)
	s.runShell(t, shellBlock(t, page, "/spec/caBundle"))

	// What cainjector does next leaves it so.
	s.renewServingOnly(t)

	bundle, err := s.load.caBundle(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if got := strings.Count(string(bundle), "BEGIN CERTIFICATE"); got != 1 {
		t.Errorf("caBundle has %d authorities", got)
	}

	if err := verify(old.leaf, bundle); err == nil {
		t.Error("a certificate of the old authority is trusted")
	}
}

func (s *installation) renewServingOnly(t *testing.T) {
	t.Helper()

	before := s.issued(t, serving)
	s.renew(t, serving)
	s.reissued(t, serving, before)
	s.served(t)
}

func upgradeFromBefore(t *testing.T, s *installation) {
	for _, rewrite := range []postRenderer{s.network.before(), s.network} {
		ca, tls := s.issued(t, authority), s.issued(t, serving)

		s.helm.upgrade(t, "", rewrite)
		s.reissued(t, authority, ca)
		s.reissued(t, serving, tls)
		s.served(t)
	}
}

func foreignIssuer(t *testing.T, s *installation) {
	s.kubectl(t, `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: pki, namespace: `+namespace+`}
spec:
  isCA: true
  commonName: pki
  secretName: pki
  privateKey: {algorithm: ECDSA}
  issuerRef: {name: pki-itself}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: pki-itself, namespace: `+namespace+`}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: pki, namespace: `+namespace+`}
spec: {ca: {secretName: pki}}
`, "apply", "-f", "-")
	s.kubectl(t, "", "wait", "issuer", "pki", "-n", namespace, "--for=condition=Ready", "--timeout=100s")

	for _, values := range []string{`{certificates: {serving: {issuerRef: {name: pki}}}}`, ""} {
		before := s.issued(t, serving)

		s.kubelet.hold()
		s.helm.upgrade(t, values, s.network)
		s.reissued(t, serving, before)
		s.trusted(t)
		s.more(t, 50)
		s.kubelet.release()
		s.served(t)
	}
}

func bundleRemoved(t *testing.T, s *installation) {
	s.kubectl(t, "", "patch", "apiservice", registration, "--type=json", "-p", `[{"op": "remove", "path": "/spec/caBundle"}]`)
	s.trusted(t)
	s.served(t)
}

func injectorAway(t *testing.T, s *installation) {
	stopProcess(t, s.injects)
	s.changeAuthority(t)
	s.refused(t, "unknown authority")
	s.more(t, 100)

	if err := s.available(t.Context()); err != nil {
		t.Errorf("the APIService is not Available: %v", err)
	}

	s.startInjecting(t)
	s.trusted(t)
	s.served(t)
}

func replacingInjector(t *testing.T, s *installation) {
	stopProcess(t, s.injects)
	s.startInjecting(t, "--feature-gates=CAInjectorMerging=false")

	s.kubelet.hold()
	s.changeAuthority(t)
	s.trusted(t)
	s.refused(t, "unknown authority")
	s.fails(t)
	s.kubelet.release()
	s.served(t)

	stopProcess(t, s.injects)
	s.startInjecting(t)
}

// expired lets the certificate of a server expire that nobody renews. Nothing here refuses durations of seconds: that is the
// webhook's, and the chart's.
func expired(t *testing.T, s *installation) {
	log := s.apiserverRuns.LogPath()
	from := said(t, log)
	before := s.issued(t, serving)

	s.setDurations(t, "20s", "1s")

	short := s.reissued(t, serving, before)
	stopProcess(t, s.issues)

	if life := short.leaf.NotAfter.Sub(short.leaf.NotBefore); life > time.Minute {
		t.Fatalf("the certificate lives for %s", life)
	}

	s.refused(t, "certificate has expired")
	s.logged(t, log, "kube-apiserver accepts it for no new connection", from)
	s.more(t, 100)

	if err := s.available(t.Context()); err != nil {
		t.Errorf("the APIService is not Available: %v", err)
	}
}

func (s *installation) setDurations(t *testing.T, duration, renewBefore string) {
	t.Helper()
	s.kubectl(t, "", "patch", "certificate", serving, "-n", namespace, "--type=merge",
		"-p", fmt.Sprintf(`{"spec": {"duration": %q, "renewBefore": %q}}`, duration, renewBefore))
}

// expiredAndRestarted begins where expired ended. Then cert-manager is back, and everything heals without a hand.
func expiredAndRestarted(t *testing.T, s *installation) {
	if err := s.apiserverRuns.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	log := s.apiserverRuns.LogPath()
	from := said(t, log)

	s.fails(t)
	s.until(t, "the APIService to say why", func(ctx context.Context) error {
		if err := s.available(ctx); err == nil || !strings.Contains(err.Error(), "certificate has expired") {
			return fmt.Errorf("it says %w", orNone(err))
		}

		return nil
	})
	s.logged(t, s.controllerRuns.LogPath(), "The API is away", 0)

	before := s.issued(t, serving)

	s.setDurations(t, "2160h", "720h")
	s.startIssuing(t)
	s.reissued(t, serving, before)
	s.served(t)
	s.logged(t, log, "The serving certificate is in order again", from)
}

// uninstall: what survives is found by our label, as the page says.
func (s *installation) uninstall(t *testing.T) {
	s.helm.uninstall(t)

	for _, program := range []interface{ Stop() error }{s.controllerRuns, s.apiserverRuns} {
		if err := program.Stop(); err != nil {
			t.Error(err)
		}
	}

	secrets, err := s.hub.Client().CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=omni-cluster-operator"})
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, secret := range secrets.Items {
		names = append(names, secret.Name)
	}

	if got, want := strings.Join(names, " "), strings.Join([]string{authority, serving, metrics}, " "); got != want {
		t.Errorf("with our label there are %q, want %q", got, want)
	}
}

// runShell runs commands of a page as an administrator.
func (s *installation) runShell(t *testing.T, script string) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), eventuallyTimeout)
	defer cancel()

	if out, err := s.hub.Shell(ctx, t.TempDir(), script); err != nil {
		t.Fatalf("%s\n%v: %s", script, err, out)
	}
}

// shellBlock returns the one block of commands in a page that has this text.
func shellBlock(t *testing.T, path, with string) string {
	t.Helper()

	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var found []string

	for i, part := range strings.Split(string(page), "```") {
		if script, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 && strings.Contains(script, with) {
			found = append(found, script)
		}
	}

	if len(found) != 1 {
		t.Fatalf("%s has %d blocks with %q", path, len(found), with)
	}

	return found[0]
}
