package contract

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/go-api-signature/pkg/message"
	"github.com/siderolabs/go-api-signature/pkg/serviceaccount"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/siderolabs/omni/client/pkg/omni/resources"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// keys tests which keys a server accepts.
func (s *suite) keys(t *testing.T) {
	list := func(t *testing.T, key string) error {
		t.Helper()

		_, err := safe.StateListAll[*omni.Cluster](deadline(t), s.connect(t, key).Omni().State())

		return err
	}

	t.Run("good", func(t *testing.T) {
		if err := list(t, s.target.ServiceAccountKey); err != nil {
			t.Error(err)
		}
	})

	t.Run("no key at all", func(t *testing.T) {
		wantError(t, list(t, "bm90IGEga2V5"), "", "failed to decode service account key")
	})

	t.Run("unknown", func(t *testing.T) {
		_, key := newKey(t, unique("stranger"), time.Hour)
		wantError(t, list(t, key), "Unauthenticated", "invalid signature")
	})

	t.Run("revoked", func(t *testing.T) {
		name, key := s.account(t, "Reader")
		if err := list(t, key); err != nil {
			t.Fatal(err)
		}

		if err := s.admin.Management().DestroyServiceAccount(deadline(t), name); err != nil {
			t.Fatal(err)
		}

		wantError(t, list(t, key), "Unauthenticated", "invalid signature")
	})

	t.Run("expired", func(t *testing.T) {
		_, key := newKey(t, unique("old"), time.Second)
		time.Sleep(2 * time.Second)
		wantError(t, list(t, key), "", "no valid signing keys")
	})

	for _, test := range []struct {
		name string
		off  time.Duration
		code string
	}{
		{"signed four minutes ago", -4 * time.Minute, "NotFound"},
		{"signed in four minutes", 4 * time.Minute, "NotFound"},
		{"signed six minutes ago", -6 * time.Minute, "Unauthenticated"},
		{"signed in six minutes", 6 * time.Minute, "Unauthenticated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := s.connect(t, s.target.ServiceAccountKey, grpc.WithChainUnaryInterceptor(signedAt(t, s.target.ServiceAccountKey, test.off)))
			_, err := client.Omni().State().Get(deadline(t), omni.NewCluster(unique("none")).Metadata())
			wantError(t, err, test.code, "")
		})
	}

	t.Run("a key of somebody else under my name", func(t *testing.T) {
		name, _ := s.account(t, "Reader")
		_, key := newKey(t, name, time.Hour)
		wantError(t, list(t, key), "Unauthenticated", "invalid signature")
	})
}

// signedAt signs calls anew, as a computer does whose clock is off.
func signedAt(t *testing.T, key string, off time.Duration) grpc.UnaryClientInterceptor {
	t.Helper()

	account, err := serviceaccount.Decode(key)
	if err != nil {
		t.Fatal(err)
	}

	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		md, _ := metadata.FromOutgoingContext(ctx)
		md = md.Copy()
		md.Set(message.TimestampHeaderKey, strconv.FormatInt(time.Now().Add(off).Unix(), 10))

		payload, err := json.Marshal(message.BuildGRPCPayload(md, method))
		if err != nil {
			return err
		}

		signature, err := account.Key.Sign(payload)
		if err != nil {
			return err
		}

		// Version, identity and key stay.
		parts := strings.Split(md.Get(message.SignatureHeaderKey)[0], " ")
		parts[len(parts)-1] = base64.StdEncoding.EncodeToString(signature)
		md.Set(message.SignatureHeaderKey, strings.Join(parts, " "))
		md.Set(message.PayloadHeaderKey, string(payload))

		return invoke(metadata.NewOutgoingContext(ctx, md), method, request, reply, conn, options...)
	}
}

// roles tests what each role may do.
func (s *suite) roles(t *testing.T) {
	none, reader, operator := s.as(t, "None"), s.as(t, "Reader"), s.as(t, "Operator")

	t.Run("lists", func(t *testing.T) {
		for _, test := range []struct {
			name         string
			st           state.State
			resourceType resource.Type
			code         string
		}{
			{"none reads versions", none, omni.TalosVersionType, ""},
			{"none reads no clusters", none, omni.ClusterType, "PermissionDenied"},
			{"none reads no statuses", none, omni.ClusterStatusType, "PermissionDenied"},
			{"reader reads clusters", reader, omni.ClusterType, ""},
			{"reader reads statuses", reader, omni.ClusterStatusType, ""},
			{"reader reads machine set statuses", reader, omni.MachineSetStatusType, ""},
			{"reader reads cluster machine statuses", reader, omni.ClusterMachineStatusType, ""},
			{"reader reads control plane statuses", reader, omni.ControlPlaneStatusType, ""},
			{"reader reads load balancers", reader, omni.LoadBalancerStatusType, ""},
			{"reader reads Kubernetes upgrades", reader, omni.KubernetesUpgradeStatusType, ""},
			{"reader reads Talos upgrades", reader, omni.TalosUpgradeStatusType, ""},
			{"reader reads the statuses of manifests", reader, omni.ClusterKubernetesManifestsStatusType, ""},
			{"reader reads the statuses of requests for machines", reader, omni.ClusterMachineRequestStatusType, ""},
			{"reader reads machines", reader, omni.MachineStatusType, ""},
			{"reader reads UUIDs", reader, omni.ClusterUUIDType, ""},
			{"reader reads no secrets", reader, omni.ClusterSecretsType, "PermissionDenied"},
			{"operator reads no secrets", operator, omni.ClusterSecretsType, "PermissionDenied"},
			{"admin reads no secrets", s.admin.Omni().State(), omni.ClusterSecretsType, "PermissionDenied"},
			{"operator reads no kubeconfigs", operator, omni.KubeconfigType, "PermissionDenied"},
		} {
			t.Run(test.name, func(t *testing.T) {
				kind := resource.NewMetadata(resources.DefaultNamespace, test.resourceType, "", resource.VersionUndefined)
				_, err := test.st.List(deadline(t), kind)

				switch {
				case test.code != "":
					wantError(t, err, test.code)
				case err != nil:
					t.Error(err)
				}
			})
		}
	})

	t.Run("writes", func(t *testing.T) {
		wantError(t, reader.Create(deadline(t), newCluster(unique("reader"))), "PermissionDenied", "insufficient role")

		cluster := newCluster(unique("operator"))
		if err := operator.Create(deadline(t), cluster); err != nil {
			t.Fatal(err)
		}

		_, err := reader.Teardown(deadline(t), cluster.Metadata())
		wantError(t, err, "PermissionDenied", "insufficient role")

		wantError(t, operator.Create(deadline(t), omni.NewClusterStatus(unique("forged"))), "PermissionDenied", "only read access")
		s.remove(t, cluster.Metadata())
	})
}
