package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// neededBinding is one that omni-apiserver cannot work without.
type neededBinding struct {
	namespace string // empty: a ClusterRoleBinding
	role      rbacv1.RoleRef
	missing   string // what the server says without it
}

var neededBindings = []neededBinding{
	{
		"", rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:auth-delegator"},
		"may not create tokenreviews.authentication.k8s.io on the hub: bind the ClusterRole system:auth-delegator to it",
	},
	{
		metav1.NamespaceSystem, rbacv1.RoleRef{Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		"may not get configmaps kube-system/extension-apiserver-authentication on the hub: " +
			"bind the Role extension-apiserver-authentication-reader in kube-system to it",
	},
	{
		"", rbacv1.RoleRef{Kind: "ClusterRole", Name: "omni-apiserver"},
		"may not watch namespaces on the hub: bind the ClusterRole omni-apiserver to it",
	},
}

// Without a right that it cannot work without, omni-apiserver ends before it serves, and says which binding is missing.
// The shared server beside it stays the registered one.
func TestStartNamesTheMissingBinding(t *testing.T) {
	t.Parallel()

	s := newSpace(t)
	registered := func() string { return s.run("get", "apiservice", apiService, "-o", "jsonpath={.metadata.uid} {.spec}") }
	before := registered()

	// All at once: each waits for its right for a while.
	var starts []*poorStart

	for i := range neededBindings {
		account := fmt.Sprintf("without-%d", i)

		for j, needed := range neededBindings {
			if i != j {
				s.bindAccount(account, needed)
			}
		}

		starts = append(starts, s.startAs(account))
	}

	for i, start := range starts {
		said := start.end(t)

		for j, needed := range neededBindings {
			if got := strings.Contains(said, needed.missing); got != (i == j) {
				t.Errorf("without %s: says %q: %t\n%s", neededBindings[i].role.Name, needed.missing, got, said)
			}
		}
	}

	if after := registered(); after != before {
		t.Errorf("the APIService was %s, and is %s", before, after)
	}
}

// bindAccount gives a service account of the space what is needed, as long as the test lives.
func (s *space) bindAccount(account string, needed neededBinding) {
	s.t.Helper()

	rbac, name := stack.Client().RbacV1(), s.name+"-"+account+"-"+strings.ReplaceAll(needed.role.Name, ":", "-")
	meta := metav1.ObjectMeta{Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.name, Name: account}}

	remove := func(ctx context.Context) error {
		return rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
	}

	var err error
	if needed.namespace == "" {
		_, err = rbac.ClusterRoleBindings().Create(s.t.Context(),
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: needed.role, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = rbac.RoleBindings(needed.namespace).Create(s.t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: needed.role, Subjects: subjects}, metav1.CreateOptions{})
		remove = func(ctx context.Context) error {
			return rbac.RoleBindings(needed.namespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
	}

	if err != nil {
		s.t.Fatal(err)
	}

	s.t.Cleanup(func() {
		if err := remove(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	})
}

// poorStart is an omni-apiserver that lacks a right.
type poorStart struct {
	command *exec.Cmd
	said    bytes.Buffer
}

// startAs starts omni-apiserver as a service account of the space, with data and a port of its own, which nobody knows.
func (s *space) startAs(account string) *poorStart {
	s.t.Helper()

	dir := s.t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	config := must(stack.RESTConfigFor(account))(s.t)

	if err := errors.Join(os.WriteFile(certificate, config.CertData, 0o600), os.WriteFile(key, config.KeyData, 0o600)); err != nil {
		s.t.Fatal(err)
	}

	kubeconfig := must(stack.Hub.KubeconfigFor("system:serviceaccount:"+s.name+":"+account, "system:serviceaccounts"))(s.t)
	port := must(stack.Hub.FreePort())(s.t)

	ctx, cancel := context.WithTimeout(s.t.Context(), eventually)
	s.t.Cleanup(cancel)

	start := &poorStart{}
	start.command = exec.CommandContext(ctx, stack.OmniAPIServer.BinaryPath(),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--etcd-data-dir="+filepath.Join(dir, "etcd"), "--tls-cert-file="+certificate, "--tls-private-key-file="+key,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port))
	start.command.Stdout, start.command.Stderr = &start.said, &start.said

	if err := start.command.Start(); err != nil {
		s.t.Fatal(err)
	}

	return start
}

// end waits until the server has ended by itself, which it has to, and returns its last words.
func (p *poorStart) end(t *testing.T) string {
	t.Helper()

	var exit *exec.ExitError
	if err := p.command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("omni-apiserver ended with %v: %s", err, p.said.String())
	}

	said := p.said.String()
	if strings.Contains(said, "Serving securely") {
		t.Errorf("it served: %s", said)
	}

	// While it waited it said so, too, and maybe before the hub knew the bindings.
	return said[max(0, strings.LastIndex(said, "rights are missing")):]
}
