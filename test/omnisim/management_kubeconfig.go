package omnisim

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/go-api-signature/pkg/message"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/yaml"

	"github.com/siderolabs/omni/client/api/omni/management"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// maxTokenLifetime is the longest ttl that Omni accepts, ten years.
const maxTokenLifetime = 10 * 365 * 24 * time.Hour

// Kubeconfig returns a kubeconfig for a service account, or for users. The latter holds no credential, needs only the
// role Reader, and is issued for any cluster name. It names an identity provider, which this server does not have.
func (m *managementServer) Kubeconfig(ctx context.Context, req *management.KubeconfigRequest) (*management.KubeconfigResponse, error) {
	if err := requireRole(ctx, RoleReader); err != nil {
		return nil, err
	}

	md, _ := metadata.FromIncomingContext(ctx)
	cluster := firstValue(md, message.ContextHeaderKey)

	switch {
	case req.GetBreakGlass():
		return nil, status.Error(codes.Unimplemented, "the simulator makes no kubeconfigs for emergencies")
	case !req.GetServiceAccount():
		kubeconfig, err := m.kubeconfigForPeople(ctx, cluster)

		return &management.KubeconfigResponse{Kubeconfig: kubeconfig}, err
	}

	if err := requireRole(ctx, RoleOperator); err != nil {
		return nil, err
	}

	if err := validateKubeconfigRequest(cluster, req); err != nil {
		return nil, err
	}

	// The UUID is created some time after the cluster; until then, as for a cluster that does not exist, the error has no
	// code.
	uuid, err := find[*omni.ClusterUUID](ctx, m.sim.resources, omni.NewClusterUUID(cluster).Metadata())
	if err != nil {
		return nil, fmt.Errorf("failed to get cluster UUID: %w", err)
	}

	if uuid == nil {
		return nil, fmt.Errorf("failed to get cluster UUID: resource %s doesn't exist", omni.NewClusterUUID(cluster).Metadata())
	}

	token, err := m.sim.signer.sign(ctx, tokenRequest{
		account:     m.sim.options.AccountName,
		cluster:     cluster,
		clusterUUID: uuid.TypedSpec().Value.GetUuid(),
		user:        req.GetServiceAccountUser(),
		groups:      req.GetServiceAccountGroups(),
		ttl:         req.GetServiceAccountTtl().AsDuration(),
	})
	if err != nil {
		return nil, fmt.Errorf("sign token: %w", err)
	}

	kubeconfig, err := renderKubeconfig(m.sim.options.AccountName+"-"+cluster+"-"+req.GetServiceAccountUser(), m.sim.KubernetesProxyURL(), token)
	if err != nil {
		return nil, fmt.Errorf("render kubeconfig: %w", err)
	}

	return &management.KubeconfigResponse{Kubeconfig: kubeconfig}, nil
}

func validateKubeconfigRequest(cluster string, req *management.KubeconfigRequest) error {
	refuse := func(format string, args ...any) error { return status.Errorf(codes.InvalidArgument, format, args...) }

	switch ttl := req.GetServiceAccountTtl(); {
	case cluster == "":
		return refuse("cluster name is not in context")
	case req.GetServiceAccountUser() == "":
		return refuse("service account user name is not set")
	case ttl == nil:
		return refuse("service account ttl is not set")
	case ttl.AsDuration() <= 0:
		return refuse("service account ttl is must be positive")
	case ttl.AsDuration() > maxTokenLifetime:
		return refuse("service account ttl is too long (max allowed: %s)", maxTokenLifetime)
	}

	return nil
}

func firstValue(md metadata.MD, key string) string {
	if values := md.Get(key); len(values) > 0 {
		return values[0]
	}

	return ""
}

// renderKubeconfig returns one cluster, one context and one user of the same name: a token, no CA and no exec, as Omni
// does.
func renderKubeconfig(name, server, token string) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters":        []any{map[string]any{"name": name, "cluster": map[string]any{"server": server}}},
		"contexts": []any{map[string]any{
			"name":    name,
			"context": map[string]any{"cluster": name, "user": name, "namespace": "default"},
		}},
		"users": []any{map[string]any{"name": name, "user": map[string]any{"token": token}}},
	})
}

// kubeconfigForPeople returns a kubeconfig that uses Omni's login: kubectl runs kubelogin, which calls the identity
// provider.
func (m *managementServer) kubeconfigForPeople(ctx context.Context, cluster string) ([]byte, error) {
	name := m.sim.options.AccountName + "-" + cluster
	user := name

	if caller, ok := callerFrom(ctx); ok && caller.identity != "" {
		user += "-" + caller.identity
	}

	return yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters":        []any{map[string]any{"name": name, "cluster": map[string]any{"server": m.sim.KubernetesProxyURL()}}},
		"contexts": []any{map[string]any{
			"name":    name,
			"context": map[string]any{"cluster": name, "user": user, "namespace": "default"},
		}},
		"users": []any{map[string]any{"name": user, "user": map[string]any{"exec": map[string]any{
			"apiVersion": "client.authentication.k8s.io/v1",
			"command":    "kubectl",
			"args": []any{
				"oidc-login", "get-token", "--oidc-issuer-url=" + m.sim.OIDCIssuerURL(), "--oidc-client-id=native", "--oidc-extra-scope=cluster:" + cluster,
			},
			"env":                nil,
			"interactiveMode":    "IfAvailable",
			"provideClusterInfo": false,
		}}}},
	})
}

// OIDCIssuerURL is the identity provider in kubeconfigs for users: below the endpoint, as Omni's is. Nothing is served
// there.
func (s *Server) OIDCIssuerURL() string { return s.Endpoint() + "/oidc" }
