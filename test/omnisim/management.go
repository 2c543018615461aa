package omnisim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/go-api-signature/pkg/pgp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/siderolabs/omni/client/api/omni/management"
	"github.com/siderolabs/omni/client/pkg/access"
)

// maxKeyLifetime is the longest lifetime of a service-account key that is registered over the wire.
const maxKeyLifetime = 365 * 24 * time.Hour

// managementServer is the part of Omni's management service that is needed to operate clusters: kubeconfigs and service
// accounts. Other methods answer Unimplemented.
type managementServer struct {
	management.UnimplementedManagementServiceServer
	sim *Server
}

// CreateServiceAccount creates a service account with its first public key.
func (m *managementServer) CreateServiceAccount(ctx context.Context, req *management.CreateServiceAccountRequest) (*management.CreateServiceAccountResponse, error) {
	if err := requireRole(ctx, RoleAdmin); err != nil {
		return nil, err
	}

	role := Role(req.GetRole())
	if req.GetUseUserRole() {
		role = RoleAdmin
	}

	if err := validateServiceAccountKey(req.GetArmoredPgpPublicKey()); err != nil {
		return nil, err
	}

	id, err := m.sim.accounts.create(req.GetName(), role, req.GetArmoredPgpPublicKey())
	if err != nil {
		return nil, err
	}

	return &management.CreateServiceAccountResponse{PublicKeyId: id}, nil
}

// RenewServiceAccount adds a public key to a service account.
func (m *managementServer) RenewServiceAccount(ctx context.Context, req *management.RenewServiceAccountRequest) (*management.RenewServiceAccountResponse, error) {
	if err := requireRole(ctx, RoleAdmin); err != nil {
		return nil, err
	}

	if err := validateServiceAccountKey(req.GetArmoredPgpPublicKey()); err != nil {
		return nil, err
	}

	id, err := m.sim.accounts.addKey(req.GetName(), req.GetArmoredPgpPublicKey())
	if err != nil {
		return nil, err
	}

	return &management.RenewServiceAccountResponse{PublicKeyId: id}, nil
}

// validateServiceAccountKey refuses keys that have expired or are valid for more than a year.
func validateServiceAccountKey(armored string) error {
	_, err := access.ValidatePGPPublicKey([]byte(armored), pgp.WithMaxAllowedLifetime(maxKeyLifetime))

	return err
}

// DestroyServiceAccount removes a service account and all its keys.
func (m *managementServer) DestroyServiceAccount(ctx context.Context, req *management.DestroyServiceAccountRequest) (*emptypb.Empty, error) {
	if err := requireRole(ctx, RoleAdmin); err != nil {
		return nil, err
	}

	if who, _ := callerFrom(ctx); strings.EqualFold(who.identity, accountID(req.GetName())) {
		return nil, status.Error(codes.InvalidArgument, "destroying your own service account is not allowed")
	}

	if !m.sim.accounts.remove(req.GetName()) {
		return nil, status.Errorf(codes.NotFound, "service account %q not found", req.GetName())
	}

	return &emptypb.Empty{}, nil
}

// ListServiceAccounts lists the service accounts by name.
func (m *managementServer) ListServiceAccounts(ctx context.Context, _ *emptypb.Empty) (*management.ListServiceAccountsResponse, error) {
	if err := requireRole(ctx, RoleAdmin); err != nil {
		return nil, err
	}

	return &management.ListServiceAccountsResponse{ServiceAccounts: m.sim.accounts.list()}, nil
}

func (a *accounts) list() []*management.ListServiceAccountsResponse_ServiceAccount {
	a.mu.Lock()
	defer a.mu.Unlock()

	var list []*management.ListServiceAccountsResponse_ServiceAccount

	for id, role := range a.roles {
		name := id
		if parsed, ok := access.ParseServiceAccountFromFullID(id); ok {
			name = parsed.NameWithPrefix()
		}

		account := &management.ListServiceAccountsResponse_ServiceAccount{Name: name, Role: string(role)}

		for fingerprint, key := range a.keys {
			if key.account == id {
				account.PgpPublicKeys = append(account.PgpPublicKeys, &management.ListServiceAccountsResponse_ServiceAccount_PgpPublicKey{
					Id: fingerprint, Expiration: timestamppb.New(key.expiration),
				})
			}
		}

		list = append(list, account)
	}

	slices.SortFunc(list, func(a, b *management.ListServiceAccountsResponse_ServiceAccount) int {
		return strings.Compare(a.GetName(), b.GetName())
	})

	return list
}
