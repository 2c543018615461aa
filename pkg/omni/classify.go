package omni

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/cosi-project/runtime/pkg/state"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
)

// Class is the kind of failure of an error. It decides how a caller handles the error.
type Class string

// The classes. Transient, NotReady, KeyNotYetValid, Conflict and Unreachable may pass by themselves; the others need somebody to change
// something.
const (
	// ClassNone: there is no error.
	ClassNone Class = ""
	// ClassTransient: Omni itself failed; try again with backoff.
	ClassTransient Class = "Transient"
	// ClassNotReady: the local copy is not complete or not current yet; the mirror wakes the caller.
	ClassNotReady Class = "NotReady"
	// ClassRefused: Omni or its client library rejects the content; the remedy may also be a change inside Omni.
	ClassRefused Class = "Refused"
	// ClassConflict: the resource changed since the plan was made; plan again now.
	ClassConflict Class = "Conflict"
	// ClassGone: the resource does not exist.
	ClassGone Class = "Gone"
	// ClassDenied: the service account's role does not allow it.
	ClassDenied Class = "Denied"
	// ClassUnauthenticated: Omni does not accept the key (revoked, or of another Omni), or the time at which the call was signed:
	// it says the same of both.
	ClassUnauthenticated Class = "Unauthenticated"
	// ClassKeyInvalid: the Secret value is not a service account key.
	ClassKeyInvalid Class = "KeyInvalid"
	// ClassKeyExpired: the key's lifetime is over.
	ClassKeyExpired Class = "KeyExpired"
	// ClassKeyNotYetValid: the key's lifetime begins later than now by our clock. Only Dial finds it.
	ClassKeyNotYetValid Class = "KeyNotYetValid"
	// ClassUnreachable: there is no connection (name, route, port, proxy), or a deadline passed.
	ClassUnreachable Class = "Unreachable"
	// ClassTLS: a server answers, but its certificate cannot be verified, or only one side speaks TLS.
	ClassTLS Class = "TLS"
	// ClassTooMuchData: Omni sent more than we keep, or more than one message may hold.
	ClassTooMuchData Class = "TooMuchData"
	// ClassTooOld: Omni does not serve what is needed.
	ClassTooOld Class = "TooOld"
	// ClassCanceled: our own side canceled, usually because the process stops.
	ClassCanceled Class = "Canceled"
)

// Classify returns the class of an error. It needs the text as well as the type, because the COSI wrappers hide the
// gRPC status (status.Code returns Unknown) and reuse marker interfaces: PermissionDenied satisfies
// state.IsOwnerConflictError, and InvalidArgument on update satisfies state.IsPhaseConflictError.
//
// Source of the rules: measured against Omni v1.9.3, and read from cosi-project/runtime v1.16.2
// (pkg/state/protobuf/client).
func Classify(err error) Class {
	if err == nil {
		return ClassNone
	}

	for _, rule := range []func(error) Class{classifyOwn, classifyLocal, classifyCode, classifyMarker} {
		if class := rule(err); class != ClassNone {
			return class
		}
	}

	return ClassTransient
}

// classifyOwn sorts the errors of this project, and errors that carry their class.
func classifyOwn(err error) Class {
	// The text of such an error has lost the code; its cause was classified when it arrived.
	var classified interface{ Classified() Class }
	if errors.As(err, &classified) && classified.Classified() != ClassNone {
		return classified.Classified()
	}

	var forbidden *dialguard.ForbiddenError
	if errors.As(err, &forbidden) {
		return ClassUnreachable
	}

	switch {
	case isAny(err, ErrKeyEmpty, ErrKeyEnvironmentBlock, ErrKeyWhitespace, ErrKeyNotBase64, ErrKeyNotJSON, ErrKeyNoName, ErrKeyNotPGP):
		return ClassKeyInvalid
	case isAny(err, ErrTooOld):
		return ClassTooOld
	case isAny(err, ErrTooMuchData):
		return ClassTooMuchData
	case isAny(err, ErrKeyExpired):
		return ClassKeyExpired
	case isAny(err, ErrKeyNotYetValid):
		return ClassKeyNotYetValid
	case isAny(err, ErrCABundle):
		return ClassTLS
	case isAny(err, ErrEndpoint, ErrTemplate, ErrUnserved, ErrCollision, ErrClusterLocked, ErrNotExportable):
		return ClassRefused
	case isAny(err, ErrNotSynced, ErrBehind, ErrClusterTearingDown, ErrClosed, ErrNoClusterUUID):
		return ClassNotReady
	case isAny(err, ErrPlanOutdated, ErrChangedMeanwhile):
		return ClassConflict
	case isAny(err, ErrNoCluster):
		return ClassGone
	}

	return ClassNone
}

// classifyLocal sorts failures that never reached the server's logic: they have no code, or Unavailable. A refusal,
// which has another code, may quote any of these words.
func classifyLocal(err error) Class {
	if code, found := CodeOf(err); found && code != codes.Unavailable {
		return ClassNone
	}

	var (
		unknownAuthority x509.UnknownAuthorityError
		hostname         x509.HostnameError
		invalid          x509.CertificateInvalidError
	)

	text := err.Error()

	switch {
	case strings.Contains(text, "no valid signing keys"):
		return ClassKeyExpired
	case strings.Contains(text, "failed to decode service account key"):
		return ClassKeyInvalid
	case errors.As(err, &unknownAuthority), errors.As(err, &hostname), errors.As(err, &invalid):
		return ClassTLS
	case containsAny(text, "x509:", "tls:", "credentials: cannot check peer", "server gave HTTP response to HTTPS client",
		"http2: frame too large"):
		return ClassTLS
	}

	return ClassNone
}

// classifyCode goes by the gRPC code, which is in the status, or only in the text. Omni has all methods that are called: a proxy
// without a route to it answers Unimplemented.
func classifyCode(err error) Class {
	code, found := CodeOf(err)
	if !found {
		return ClassNone
	}

	text := err.Error()

	switch code { //nolint:exhaustive // OK never is an error; the rest is transient
	case codes.Canceled:
		return ClassCanceled
	case codes.InvalidArgument, codes.OutOfRange:
		return classifyInvalid(text)
	case codes.NotFound:
		return ClassGone
	case codes.AlreadyExists, codes.Aborted:
		return ClassConflict
	case codes.FailedPrecondition:
		return classifyPrecondition(text)
	case codes.PermissionDenied:
		return classifyDenied(text)
	case codes.Unauthenticated:
		return ClassUnauthenticated
	case codes.DeadlineExceeded:
		return ClassUnreachable
	case codes.Unavailable:
		return classifyUnavailable(text)
	}

	return ClassTransient
}

// classifyInvalid separates refused content from a real phase conflict (the resource is being torn down), and from an
// upgrade that began since the plan was made: the server sends all with the same code. The next plan waits for the
// upgrade. Releases after v1.9.3 have that text.
func classifyInvalid(text string) Class {
	if containsAny(text, "is not in phase", "while a Talos upgrade is in progress", "while a Kubernetes upgrade is in progress") {
		return ClassConflict
	}

	return ClassRefused
}

// classifyPrecondition separates a version conflict from a server that refuses every call until its licence is
// accepted.
func classifyPrecondition(text string) Class {
	if strings.Contains(text, "EULA") {
		return ClassRefused
	}

	return ClassConflict
}

// classifyDenied separates a missing role from a resource that belongs to one of Omni's own controllers: the server
// sends both with the same code.
func classifyDenied(text string) Class {
	if strings.Contains(text, " is owned by ") {
		return ClassRefused
	}

	return ClassDenied
}

// classifyUnavailable separates a server that cannot be reached from one that fails. A load balancer without a backend ends the
// connection in the handshake of TLS.
func classifyUnavailable(text string) Class {
	if containsAny(text, "Error while dialing", "connection refused", "connection reset", "no such host", "i/o timeout",
		"network is unreachable", "no route to host", "name resolver error", "produced zero addresses",
		"context deadline exceeded", "error reading from server", "error reading server preface", "transport is closing",
		"keepalive ping failed", "connection closed", "authentication handshake failed") {
		return ClassUnreachable
	}

	return ClassTransient
}

// classifyMarker goes by marker interfaces and network types, for errors without a code: those of an in-memory state,
// or of the network itself.
func classifyMarker(err error) Class {
	var network net.Error

	switch {
	case errors.Is(err, context.Canceled):
		return ClassCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network):
		return ClassUnreachable
	case state.IsNotFoundError(err):
		return ClassGone
	case state.IsOwnerConflictError(err), state.IsUnsupportedError(err):
		return ClassRefused
	case state.IsConflictError(err), state.IsPhaseConflictError(err):
		return ClassConflict
	}

	return ClassNone
}

// CodeOf returns the gRPC code of an error: from the status if it can be reached, else from the text, where it always
// stands as "code = <Name>".
func CodeOf(err error) (codes.Code, bool) {
	if reachable, ok := status.FromError(err); ok {
		return reachable.Code(), true
	}

	_, rest, found := strings.Cut(err.Error(), "code = ")
	if !found {
		return codes.Unknown, false
	}

	name, _, _ := strings.Cut(rest, " ")

	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		if code.String() == name {
			return code, true
		}
	}

	return codes.Unknown, true
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}

	return false
}

func containsAny(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}

	return false
}

// KindOf shortens a COSI resource type for people: "MachineSetNodes.omni.sidero.dev" becomes "MachineSetNode".
func KindOf(resourceType string) string {
	name, _, _ := strings.Cut(resourceType, ".")

	switch {
	case name == "KernelArgs":
		return name
	case strings.HasSuffix(name, "Patches"):
		return strings.TrimSuffix(name, "es")
	case strings.HasSuffix(name, "Statuses"):
		return strings.TrimSuffix(name, "es")
	default:
		return strings.TrimSuffix(name, "s")
	}
}

// Effect is what the copy must show after one of our writes.
type Effect int

const (
	EffectCreated  Effect = iota // exists, in this version or a later one
	EffectUpdated                // this version or a later one, or gone
	EffectTornDown               // phase tearing down, or gone
	EffectGone                   // gone, or created again
)
