package helm

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// The bounds of Helm's record of one revision, which anybody may write who may write Secrets in the release's
// namespace. The record of a chart with CRDs and dashboards of several MiB has 5 MiB when it is not compressed, and
// some ten thousand values: files and manifests are one value each.
const (
	maxRecord         = corev1.MaxSecretSize
	maxInflatedRecord = 32 << 20
)

// RecordLimits bound one record without compression.
func RecordLimits() foreign.Limits {
	return foreign.Limits{Bytes: maxInflatedRecord, Depth: 200, Nodes: 200_000, Expanded: maxInflatedRecord}
}

// reading is the one place of the process for a record that is decoded: for a moment it takes several times its size.
//
//nolint:gochecknoglobals // the memory is the process's, too
var reading = semaphore.NewWeighted(1)

// records lets Helm keep its releases in Secrets, within bounds. Whoever may write Secrets can write a record, and Helm decodes all
// that it finds. storage, above it, decides which records Helm sees. Helm inflates a record without a limit, so each is looked at before
// Helm sees it. Once one was refused, the action that wanted it writes and deletes none: it does not know the release.
type records struct {
	driver.Driver

	secrets *recordSecrets
}

// RecordSize is what a record becomes.
type RecordSize struct {
	// Record is what is decoded, and Manifests what Helm makes of the manifests inside.
	Record, Manifests foreign.Size
}

// AdmitRecord is asked before a record is decoded that is kept after that. If it returns an error, that is the one of the read,
// and the action writes and removes no record.
type AdmitRecord func(name string, size RecordSize) error

// NewRecords makes the storage for one action, whose requests end with ctx. Records are in the namespace of the release. The
// storage lists none: what it is asked for is one record, by its name. A record is not read, and RefusedError says why, if
// it has more than 1 MiB, more than 32 MiB without compression, or manifests beyond drift.ManifestLimits; none of that size is
// written. Admit may be nil. The error is that of a configuration that no client can be made of.
func NewRecords(ctx context.Context, config *action.Configuration, namespace string, admit AdmitRecord) (driver.Driver, error) {
	rest, err := config.RESTClientGetter.ToRESTConfig()
	if err != nil {
		return nil, err
	}

	client, err := typedcorev1.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("make a client for the workload cluster: %w", err)
	}

	secrets := &recordSecrets{SecretInterface: client.Secrets(namespace), ctx: ctx, namespace: namespace, admit: admit}
	wrapped := driver.NewSecrets(secrets)
	wrapped.SetLogger(config.Logger().Handler())

	return &records{Driver: wrapped, secrets: secrets}, nil
}

// RecordRefusedError is a record that is larger than what is read, or damaged. The action that met it writes and removes none.
type RecordRefusedError struct {
	// Message says which Secret it is, what is wrong with it, and what to do. It is fit for conditions.
	Message string
}

// Error returns the message.
func (e *RecordRefusedError) Error() string { return e.Message }

// Get implements driver.Driver.
func (r *records) Get(name string) (release.Releaser, error) {
	defer r.secrets.decoded()

	return r.Driver.Get(name)
}

// Delete implements driver.Driver. Helm reads what it deletes, and does not keep it.
func (r *records) Delete(name string) (release.Releaser, error) {
	r.secrets.deleting = true

	defer func() { r.secrets.deleting = false }()
	defer r.secrets.decoded()

	return r.Driver.Delete(name)
}

// recordSecrets are the Secrets of a namespace, for Helm's driver. It is for one action, which does one thing at a time.
type recordSecrets struct {
	typedcorev1.SecretInterface

	ctx       context.Context //nolint:containedctx // Helm's driver passes none
	namespace string
	admit     AdmitRecord // may be nil
	deleting  bool        // what is read is not kept
	reading   bool        // has the place
	refused   error       // why a record was refused
}

// Get reads a record, and keeps the place for decoding it until decoded is called.
func (s *recordSecrets) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := s.SecretInterface.Get(ctx, name, options)
	if apierrors.IsNotFound(err) && !clusteraccess.NotFound(err) {
		return nil, errors.New(err.Error()) // Helm would take it for a record that is not there
	}

	if err != nil {
		return nil, err
	}

	if err := reading.Acquire(s.ctx, 1); err != nil {
		return nil, fmt.Errorf("wait until the record may be read: %w", err)
	}

	s.reading = true

	size, err := checkRecord(s.ctx, secret.Data["release"])
	if err != nil {
		s.decoded()

		if s.ctx.Err() != nil {
			return nil, err
		}

		s.refused = &RecordRefusedError{Message: fmt.Sprintf("Helm's record of the release, Secret %s in namespace %s of the workload cluster, "+
			"is not read, and nothing was changed: it %s. Helm does not write such a record: find out who did, then restore the Secret from a backup. "+
			"If its revision is not needed, delete the Secret", name, s.namespace, err)}

		return nil, s.refused
	}

	if s.admit != nil && !s.deleting {
		if err := s.admit(name, size); err != nil {
			s.refused = err
			s.decoded()

			return nil, err
		}
	}

	return secret, nil
}

// decoded gives the place back.
func (s *recordSecrets) decoded() {
	if s.reading {
		s.reading = false
		reading.Release(1)
	}
}

// List implements SecretInterface. Helm would decode every record of the namespace at once.
func (s *recordSecrets) List(context.Context, metav1.ListOptions) (*corev1.SecretList, error) {
	return nil, errors.New("records are not listed with their content")
}

// Create implements SecretInterface. A record that could not be read later is not written.
func (s *recordSecrets) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	if s.refused != nil {
		return nil, s.refused
	}

	if err := s.checkWritten(secret); err != nil {
		return nil, err
	}

	return s.SecretInterface.Create(ctx, secret, options)
}

// Update implements SecretInterface. An update may replace the whole record, so it is checked as a new one is.
func (s *recordSecrets) Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error) {
	if s.refused != nil {
		return nil, s.refused
	}

	if err := s.checkWritten(secret); err != nil {
		return nil, err
	}

	return s.SecretInterface.Update(ctx, secret, options)
}

// Delete implements SecretInterface.
func (s *recordSecrets) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	s.decoded() // what was read was decoded by now

	if s.refused != nil {
		return s.refused
	}

	return s.SecretInterface.Delete(ctx, name, options)
}

// checkWritten returns why a record may not be written.
func (s *recordSecrets) checkWritten(secret *corev1.Secret) error {
	if _, err := checkRecord(s.ctx, secret.Data["release"]); err != nil {
		return fmt.Errorf("the chart is too large: with its values and manifests, which Helm keeps in Secret %s, it %w", secret.Name, err)
	}

	return nil
}

// checkRecord decides whether Helm may decode a record: JSON, compressed with gzip or not, in base64. It returns what that
// becomes.
func checkRecord(ctx context.Context, encoded []byte) (RecordSize, error) {
	if len(encoded) > maxRecord {
		return RecordSize{}, &foreign.LimitError{What: foreign.Bytes, Limit: maxRecord}
	}

	text := make([]byte, base64.StdEncoding.DecodedLen(len(encoded)))

	length, err := base64.StdEncoding.Decode(text, encoded)
	if err != nil {
		return RecordSize{}, errors.New("is not base64")
	}

	if text = text[:length]; bytes.HasPrefix(text, []byte{0x1f, 0x8b, 0x08}) { // as Helm tells gzip
		if text, err = foreign.Gunzip(text, maxInflatedRecord); err != nil {
			return RecordSize{}, err
		}
	}

	// Helm reads no YAML here, and a YAML text of this size would take gigabytes to look at.
	if !json.Valid(text) {
		return RecordSize{}, errors.New("is damaged")
	}

	size, err := foreign.Measure(ctx, text, RecordLimits())
	if err != nil {
		return RecordSize{}, err
	}

	manifests, err := checkTexts(ctx, text)

	return RecordSize{Record: size, Manifests: manifests}, err
}
