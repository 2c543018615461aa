package omni_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
)

// opaque wraps an error as the COSI client does: with a marker, without Unwrap.
type opaque struct{ error }

func (opaque) ConflictError()                {}
func (opaque) GetResource() resource.Pointer { return omnires.NewCluster("x").Metadata() }

type opaqueOwner struct{ opaque }

func (opaqueOwner) OwnerConflictError() {}

type opaquePhase struct{ opaque }

func (opaquePhase) PhaseConflictError() {}

// opaqueUnsupported is the error of a write to the local copy.
type opaqueUnsupported struct{ error }

func (opaqueUnsupported) UnsupportedError() {}

func TestClassify(t *testing.T) {
	running := omnires.NewCluster("demo").Metadata()

	for name, test := range map[string]struct {
		err  error
		want omni.Class
	}{
		"nil": {nil, omni.ClassNone},

		// Omni's answers, as the client library returns them.
		"create refused": {status.Error(codes.InvalidArgument, "failed to validate: 1 error occurred: invalid talos version"), omni.ClassRefused},
		"update refused looks like a phase conflict": {
			opaquePhase{opaque{status.Error(codes.InvalidArgument, "failed to validate: downgrade is not supported")}}, omni.ClassRefused,
		},
		"a real phase conflict": {
			opaquePhase{opaque{status.Error(codes.InvalidArgument, "resource Clusters.omni.sidero.dev(default/demo@3) is not in phase running")}},
			omni.ClassConflict,
		},
		"a version while Omni upgrades the other one": {
			opaquePhase{opaque{status.Error(codes.InvalidArgument,
				"failed to validate: 1 error occurred:\n\t* the Kubernetes version cannot be updated while a Talos upgrade is in progress\n\n")}},
			omni.ClassConflict,
		},
		"two versions at once": {
			opaquePhase{opaque{status.Error(codes.InvalidArgument,
				"failed to validate: 1 error occurred:\n\t* the Talos and Kubernetes versions cannot be updated at the same time\n\n")}},
			omni.ClassRefused,
		},
		"denied looks like an owner conflict": {
			opaqueOwner{opaque{status.Error(codes.PermissionDenied, "only Operator is allowed")}}, omni.ClassDenied,
		},
		"a real owner conflict": {
			opaqueOwner{opaque{status.Error(codes.PermissionDenied, `resource x is owned by "MachineSetNodeController"`)}}, omni.ClassRefused,
		},
		"version conflict":     {opaque{status.Error(codes.FailedPrecondition, "update conflict: expected version")}, omni.ClassConflict},
		"already exists":       {opaque{status.Error(codes.AlreadyExists, "resource x already exists")}, omni.ClassConflict},
		"licence not accepted": {status.Error(codes.FailedPrecondition, "EULA has not been accepted"), omni.ClassRefused},
		"not found":            {status.Error(codes.NotFound, "doesn't exist"), omni.ClassGone},
		"revoked key":          {status.Error(codes.Unauthenticated, "invalid signature"), omni.ClassUnauthenticated},
		"denied":               {status.Error(codes.PermissionDenied, "only Reader is allowed"), omni.ClassDenied},
		"server failure":       {status.Error(codes.Internal, "boom"), omni.ClassTransient},
		"unknown failure":      {status.Error(codes.Unknown, "failed to get cluster UUID"), omni.ClassTransient},
		"overloaded":           {status.Error(codes.ResourceExhausted, "slow down"), omni.ClassTransient},
		"unavailable behind":   {status.Error(codes.Unavailable, "unexpected HTTP status code received from server: 503"), omni.ClassTransient},
		"a future code":        {errors.New("rpc error: code = Code(99) desc = x"), omni.ClassTransient},
		"a refusal that quotes a certificate error": {
			status.Error(codes.InvalidArgument, "invalid patch: cluster.ca: x509: malformed certificate; tls: bad"), omni.ClassRefused,
		},

		// The network.
		"refused connection": {
			status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`),
			omni.ClassUnreachable,
		},
		"no such host": {status.Error(codes.Unavailable, "dns: A record lookup error: lookup omni.invalid: no such host"), omni.ClassUnreachable},
		"unknown authority through the library": {
			status.Error(codes.Unavailable, "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"),
			omni.ClassTLS,
		},
		"unknown authority through the dialer": {
			status.Error(codes.Unavailable, "Error while dialing: tls: failed to verify certificate: x509: certificate is valid for a, not b"), omni.ClassTLS,
		},
		"handshake cut off": {
			status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: EOF"`), omni.ClassUnreachable,
		},
		"handshake reset": {
			status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer"`),
			omni.ClassUnreachable,
		},
		"handshake that does not end": {
			status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: context deadline exceeded"`), omni.ClassUnreachable,
		},
		"server without HTTP/2": {
			status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: credentials: cannot check peer: missing selected ALPN property"`),
			omni.ClassTLS,
		},
		"method without a route":    {status.Error(codes.Unimplemented, "unknown service cosi.resource.State"), omni.ClassTransient},
		"plaintext server":          {status.Error(codes.Unavailable, "tls: first record does not look like a TLS handshake"), omni.ClassTLS},
		"x509 type":                 {fmt.Errorf("dial: %w", x509.UnknownAuthorityError{}), omni.ClassTLS},
		"deadline from the server":  {status.Error(codes.DeadlineExceeded, "context deadline exceeded"), omni.ClassUnreachable},
		"deadline of ours":          {fmt.Errorf("read: %w", context.DeadlineExceeded), omni.ClassUnreachable},
		"network error":             {&net.OpError{Op: "dial", Err: errors.New("boom")}, omni.ClassUnreachable},
		"canceled by the server":    {status.Error(codes.Canceled, "context canceled"), omni.ClassCanceled},
		"canceled by us":            {fmt.Errorf("read: %w", context.Canceled), omni.ClassCanceled},
		"server gone in mid stream": {status.Error(codes.Unavailable, "error reading from server: EOF"), omni.ClassUnreachable},

		// Failures of the library before it sends anything.
		"undecodable key": {errors.New("failed to decode service account key from options: illegal base64 data"), omni.ClassKeyInvalid},
		"expired key":     {errors.New("failed to sign message: openpgp: invalid argument: no valid signing keys"), omni.ClassKeyExpired},

		// Errors of an in-memory state have no codes.
		"in-memory not found":      {inmem.ErrNotFound(running), omni.ClassGone},
		"in-memory exists":         {inmem.ErrAlreadyExists(running), omni.ClassConflict},
		"in-memory version":        {inmem.ErrVersionConflict(running, resource.VersionUndefined, resource.VersionUndefined), omni.ClassConflict},
		"in-memory owner":          {inmem.ErrOwnerConflict(running, "someone"), omni.ClassRefused},
		"in-memory phase":          {inmem.ErrPhaseConflict(running, resource.PhaseRunning), omni.ClassConflict},
		"anything else":            {errors.New("boom"), omni.ClassTransient},
		"our sentinels, wrapped":   {fmt.Errorf("a: %w", omni.ErrBehind), omni.ClassNotReady},
		"not synced":               {omni.ErrNotSynced, omni.ClassNotReady},
		"tearing down":             {omni.ErrClusterTearingDown, omni.ClassNotReady},
		"closed":                   {omni.ErrClosed, omni.ClassNotReady},
		"bad template":             {fmt.Errorf("%w: x", omni.ErrTemplate), omni.ClassRefused},
		"collision":                {&plan.CollisionError{Type: "MachineSetNodes.omni.sidero.dev"}, omni.ClassRefused},
		"locked":                   {omni.ErrClusterLocked, omni.ClassRefused},
		"outdated":                 {fmt.Errorf("%w: %w", omni.ErrPlanOutdated, inmem.ErrNotFound(running)), omni.ClassConflict},
		"no such cluster":          {fmt.Errorf("export: %w", omni.ErrNoCluster), omni.ClassGone},
		"two states":               {fmt.Errorf("export: %w", omni.ErrChangedMeanwhile), omni.ClassConflict},
		"no template":              {fmt.Errorf("%w: x", omni.ErrNotExportable), omni.ClassRefused},
		"bad endpoint":             {omni.ErrEndpoint, omni.ClassRefused},
		"bad bundle":               {omni.ErrCABundle, omni.ClassTLS},
		"expired before dialling":  {omni.ErrKeyExpired, omni.ClassKeyExpired},
		"not valid yet":            {fmt.Errorf("dial: %w", omni.ErrKeyNotYetValid), omni.ClassKeyNotYetValid},
		"write to the copy":        {opaqueUnsupported{omni.ErrReadOnly}, omni.ClassRefused},
		"wrapped with annotations": {fmt.Errorf("watch X: %w", status.Error(codes.Unauthenticated, "x")), omni.ClassUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			if got := omni.Classify(test.err); got != test.want {
				t.Errorf("Classify(%v) = %q, want %q", test.err, got, test.want)
			}
		})
	}
}

// TestMarkersMislead checks the premise of the rules above: the markers are wrong.
func TestMarkersMislead(t *testing.T) {
	if !state.IsOwnerConflictError(opaqueOwner{opaque{errors.New("x")}}) || !state.IsPhaseConflictError(opaquePhase{opaque{errors.New("x")}}) {
		t.Fatal("the test's wrappers are unlike the client library's")
	}

	if status.Code(opaque{status.Error(codes.FailedPrecondition, "x")}) != codes.Unknown {
		t.Fatal("the status can be reached after all")
	}
}
