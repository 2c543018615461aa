package omni

import (
	"errors"
	"regexp"
	"strings"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// Sentinels for decisions. Classify handles all of them.
var (
	// ErrKeyExpired: the service account key's lifetime is over. Dial checks it before it connects.
	ErrKeyExpired = errors.New("the service account key has expired: create a new one with `omnictl serviceaccount renew` or `create`")

	// ErrKeyNotYetValid: the service account key was made later than now, by the clocks here and there. Dial checks it before it
	// connects.
	ErrKeyNotYetValid = errors.New("the service account key is not valid yet: wait until it is, or mend the clock that is wrong, the one here or the one of the computer where the key was made")

	// ErrEndpoint: the endpoint is not a usable URL.
	ErrEndpoint = errors.New("the endpoint is not a usable URL (https://host[:port], or http/grpc for plaintext)")

	// ErrCABundle: the CA bundle holds no certificate that can be read.
	ErrCABundle = errors.New("the CA bundle holds no readable PEM certificate")

	// ErrNotSynced: the local copy is incomplete, or a watch is lost.
	ErrNotSynced = errors.New("the local copy of Omni's resources is not complete")

	// ErrBehind: the local copy does not show our own writes yet.
	ErrBehind = errors.New("the local copy of Omni's resources does not show our last writes yet")

	// ErrReadOnly: a caller tried to write to the local copy.
	ErrReadOnly = errors.New("the local copy of Omni's resources is read-only")

	// ErrTemplate: the template does not load, validate or translate. The client library says so: this never depends on what is
	// in Omni, nor on its version.
	ErrTemplate = errors.New("the Omni client of this build refuses the cluster template")

	// ErrUnserved: the template needs what this Omni does not have. It ends when Omni is upgraded.
	ErrUnserved = errors.New("this Omni is too old for a part of the cluster template")

	// ErrCollision: a resource of the template exists in Omni and belongs to another cluster, or to another part of this
	// one. The error is a *CollisionError.
	ErrCollision = errors.New("already in use in Omni")

	// ErrClusterTearingDown: Omni is destroying the cluster; nothing is planned until it is gone.
	ErrClusterTearingDown = errors.New("the cluster is being destroyed in Omni")

	// ErrClusterLocked: the cluster is locked in Omni (annotation omni.sidero.dev/cluster-locked); Apply changes nothing.
	ErrClusterLocked = errors.New("the cluster is locked in Omni (annotation omni.sidero.dev/cluster-locked)")

	// ErrPlanOutdated: Omni's resources changed after the plan was made.
	ErrPlanOutdated = errors.New("the plan is out of date")

	// ErrClosed: the session or pool was closed.
	ErrClosed = errors.New("the connection to Omni was closed")
)

// ErrTooMuchData: an Omni sent more than we keep, or more than one message may hold. The error is a *TooMuchDataError.
var ErrTooMuchData = errors.New("Omni sent too much data") // Omni is a name

// TooMuchDataError names the bound that was exceeded, and the flag that raises it. It is ErrTooMuchData.
type TooMuchDataError struct{ Message string }

// Error implements error. The text holds none of the data.
func (e *TooMuchDataError) Error() string { return e.Message }

// Is makes errors.Is(err, ErrTooMuchData) true.
func (e *TooMuchDataError) Is(target error) bool { return target == ErrTooMuchData }

// Sentinels of an export. Classify handles them.
var (
	// ErrNoCluster: Omni has no cluster of that name.
	ErrNoCluster = errors.New("the cluster was not found in Omni")

	// ErrNotExportable: the library cannot write the cluster as a template; a user has to change the cluster in Omni.
	ErrNotExportable = errors.New("the Omni client cannot write the cluster as a template")

	// ErrChangedMeanwhile: the cluster changed while the export read its parts.
	ErrChangedMeanwhile = errors.New("the cluster was changed in Omni meanwhile: run the export again")
)

// Why a Secret value is not a service account key. Each reason has one message; no message repeats any of the input.
var (
	// ErrKeyEmpty: the value has no characters besides white space.
	ErrKeyEmpty = errors.New("the service account key is empty: store the value of OMNI_SERVICE_ACCOUNT_KEY that `omnictl serviceaccount create` printed")

	// ErrKeyEnvironmentBlock: the value is what `omnictl serviceaccount create` prints (OMNI_ENDPOINT=...,
	// OMNI_SERVICE_ACCOUNT_KEY=...), not the key.
	ErrKeyEnvironmentBlock = errors.New("the value is an environment block (OMNI_ENDPOINT=..., OMNI_SERVICE_ACCOUNT_KEY=...): store only what follows OMNI_SERVICE_ACCOUNT_KEY=, without quotes")

	// ErrKeyWhitespace: the value has several lines or inner white space.
	ErrKeyWhitespace = errors.New("the service account key has white space or several lines in it: store the bare base64 text as one line")

	// ErrKeyNotBase64: the value is not standard base64.
	ErrKeyNotBase64 = errors.New("the service account key is not base64: store the value of OMNI_SERVICE_ACCOUNT_KEY unchanged (a Secret's stringData takes it as it is)")

	// ErrKeyNotJSON: the decoded value is not the JSON document with name and pgp_key.
	ErrKeyNotJSON = errors.New("the service account key does not hold the expected JSON document (name, pgp_key): create a new key with `omnictl serviceaccount create`")

	// ErrKeyNoName: the JSON document has no service account name.
	ErrKeyNoName = errors.New("the service account key names no service account: create a new key with `omnictl serviceaccount create`")

	// ErrKeyNotPGP: pgp_key is not an armored, unlocked PGP private key.
	ErrKeyNotPGP = errors.New("the service account key holds no usable PGP private key: create a new key with `omnictl serviceaccount create`")
)

// ErrNoClusterUUID: Omni has no such cluster, or created it a moment ago and has not given it a UUID yet. Its class is
// ClassNotReady.
var ErrNoClusterUUID = errors.New("Omni has no identity of the cluster yet, or no such cluster") // Omni is a name

// Message returns a text for conditions, events and logs: the kind of failure in plain words, then the error's own
// text, without the gRPC wrapping, on one line, without long opaque tokens, and never longer than redact.MaxBytes. For
// nil it returns "".
func Message(err error) string {
	if err == nil {
		return ""
	}

	said := Sanitize(expiredText.ReplaceAllLiteralString(err.Error(), ErrKeyExpired.Error()))

	// Errors of Apply already have the lead, after the resource's name. Of ErrTemplate and ErrUnserved, Omni does not know.
	if lead := leads[Classify(err)]; lead != "" && !strings.Contains(said, lead) && !isAny(err, ErrTemplate, ErrUnserved) {
		said = lead + ": " + said
	}

	return redact.Bounded(said, redact.MaxBytes)
}

// Sanitize makes one bounded line of any external text: it removes the gRPC wrapping, and everything that looks like a
// secret.
func Sanitize(text string) string {
	return redact.Line(plainNames.Replace(grpcWrapping.ReplaceAllString(text, "")))
}

// plainNames replaces errors of gRPC's resolver with their meaning.
//
//nolint:gochecknoglobals // a constant table
var plainNames = strings.NewReplacer(
	"name resolver error: produced zero addresses", "the host name of the endpoint does not resolve to an address (DNS)",
)

// leads begin the message of a condition. Classes whose own text is clear enough have none.
//
//nolint:gochecknoglobals // a constant table
var leads = map[Class]string{
	ClassTransient:       "Omni failed to answer",
	ClassRefused:         "Omni refuses this",
	ClassConflict:        "changed in Omni meanwhile",
	ClassGone:            "not found in Omni",
	ClassDenied:          "the service account's role does not allow this (Operator is needed)",
	ClassUnauthenticated: "Omni does not accept this service account key (it was revoked, or made for another Omni, or the clock here is more than 5 minutes from Omni's)",
	ClassKeyExpired:      "the service account key has expired",
	ClassUnreachable:     "Omni cannot be reached",
	ClassTLS:             "the TLS connection to Omni fails",
}

// expiredText matches how the library, which signs each call, reports an expired key.
var expiredText = regexp.MustCompile(`(?:failed to sign message: |gopenpgp: |openpgp: )(?:[^"]*: )?no valid signing keys`)

var grpcWrapping = regexp.MustCompile(`rpc error: code = [A-Za-z]+ desc = `)
