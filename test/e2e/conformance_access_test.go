package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Somebody who reaches the server past kube-apiserver cannot say who they are by headers.
func TestForgedHeadersAreNotBelieved(t *testing.T) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(stack.Hub.CA())

	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}

	pair, err := tls.X509KeyPair(stack.Hub.FrontProxyClient())
	if err != nil {
		t.Fatal(err)
	}

	proxy := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}},
	}

	const objects = "/apis/omni.texashpc.com/v1alpha1/omniclusters"

	for _, tc := range []struct {
		name   string
		client *http.Client
		path   string
		header http.Header
		want   int
	}{
		{"forged", client, objects, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 401},
		{"forged, discovery", client, "/apis", http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 401},
		{"a token nobody issued", client, objects, http.Header{"Authorization": {"Bearer none"}}, 401},
		{"nobody", client, "/metrics", nil, 401},
		{"nobody, health", client, "/readyz", nil, 200},
		{"the front proxy for a user without rights", proxy, objects, http.Header{"X-Remote-User": {"joe"}}, 403},
		{"the front proxy for an administrator", proxy, objects, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, stack.OmniAPIServer.URL()+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}

			for key, values := range tc.header {
				request.Header[key] = values
			}

			answer, err := tc.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()

			if answer.StatusCode != tc.want {
				t.Errorf("status %d, want %d", answer.StatusCode, tc.want)
			}
		})
	}
}

func TestRolesOfUsers(t *testing.T) {
	s := newSpace(t)
	s.apply(clusterManifest("c", "  suspend: true"), workersManifest("w", "c", classOf("m", 1)))

	for _, role := range []string{"view", "edit", "admin"} {
		s.run("create", "rolebinding", role, "--clusterrole="+role, "--user="+role)
	}

	// The API server asks the hub and remembers answers for some seconds: nobody may ask too early.
	for _, role := range []string{"view", "edit", "admin"} {
		s.wait(role+" to be bound", func() error {
			_, err := s.try("auth", "can-i", "get", "omniclusters", "--as="+role)

			return err
		})
	}

	can := map[string]string{
		"get omniclusters": "view edit admin", "watch omniworkers": "view edit admin",
		"get omniclusters --subresource=status": "view edit admin", "get omniworkers --subresource=scale": "view edit admin",
		"get omniclusters --subresource=template": "edit admin", "update omniworkers --subresource=scale": "edit admin",
		"create omniclusters": "edit admin", "deletecollection omniconnections": "edit admin",
		"patch omniclusters --subresource=status": "", "update omniworkers --subresource=status": "",
	}
	for verb, want := range can {
		var allowed []string

		for _, user := range []string{"nobody", "view", "edit", "admin"} {
			if _, err := s.try(append(append([]string{"auth", "can-i"}, strings.Fields(verb)...), "--as="+user)...); err == nil {
				allowed = append(allowed, user)
			}
		}

		if got := strings.Join(allowed, " "); got != want {
			t.Errorf("%s: %q, want %q", verb, got, want)
		}
	}

	// The server itself enforces it.
	if _, err := s.try("scale", "ow/w", "--replicas=2", "--as=view"); err == nil || !strings.Contains(err.Error(), "omniworkers/scale") {
		t.Errorf("view scaled: %v", err)
	}

	s.run("scale", "ow/w", "--replicas=2", "--as=edit")
}

// Without these plugins in our own server a hub's policies would silently not apply to our kinds.
func TestPoliciesOfTheHubApply(t *testing.T) {
	s := newSpace(t)
	policy := strings.ReplaceAll(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: SPACE}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*", "*/scale"]}]}
  validations: [{expression: "!has(object.spec.replicas) || object.spec.replicas < 50", message: too many machines},
    {expression: "object.metadata.name != 'forbidden'", message: not this name}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: SPACE}
spec: {policyName: SPACE, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}}}`,
		"SPACE", s.name)
	s.apply(policy)

	t.Cleanup(func() {
		_, _, err := stack.Kubectl(context.WithoutCancel(t.Context()), "delete",
			"validatingadmissionpolicy/"+s.name, "validatingadmissionpolicybinding/"+s.name)
		if err != nil {
			t.Error(err)
		}
	})

	s.wait("the policy to apply", func() error {
		_, err := s.tryInput(workersManifest("forbidden", "c", "machines: []"), "apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "not this name") {
			return errors.Join(errors.New("not refused"), err)
		}

		return nil
	})

	s.apply(workersManifest("w", "c", classOf("m", 1)))

	if _, err := s.try("scale", "ow/w", "--replicas=60"); err == nil || !strings.Contains(err.Error(), "too many machines") {
		t.Errorf("scaled against the policy: %v", err)
	}
}
