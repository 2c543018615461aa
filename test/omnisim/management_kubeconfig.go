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

// Kubeconfig answers with a kubeconfig for a service account. Kubeconfigs for people need an
// identity provider, which this server does not have.
func (m *managementServer) Kubeconfig(ctx context.Context, req *management.KubeconfigRequest) (*management.KubeconfigResponse, error) {
	if err := requireRole(ctx, RoleReader); err != nil {
		return nil, err
	}

	if req.GetBreakGlass() || !req.GetServiceAccount() {
		return nil, status.Error(codes.Unimplemented, "the simulator makes kubeconfigs for service accounts only")
	}

	if err := requireRole(ctx, RoleOperator); err != nil {
		return nil, err
	}

	md, _ := metadata.FromIncomingContext(ctx)
	cluster := firstValue(md, message.ContextHeaderKey)

	if err := validateKubeconfigRequest(cluster, req); err != nil {
		return nil, err
	}

	// The UUID appears some time after the cluster; until then, as for a cluster that does not
	// exist, the answer has no code.
	uuid, err := find[*omni.ClusterUUID](ctx, m.sim.resources, omni.NewClusterUUID(cluster).Metadata())
	if err != nil {
		return nil, fmt.Errorf("failed to get cluster UUID: %w", err)
	}

	if uuid == nil {
		return nil, fmt.Errorf("failed to get cluster UUID: resource %s doesn't exist", omni.NewClusterUUID(cluster).Metadata())
	}

	token, err := m.sim.signer.sign(tokenRequest{
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

// renderKubeconfig writes one cluster, one context and one user of the same name: a token, no CA
// and no exec, as Omni does.
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
