package omnisecretsync

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
)

// managedBy is the value of the label app.kubernetes.io/managed-by on what is written.
const managedBy = "omni-controller"

// The metadata of a written Secret that names its owner. Only the UID and the hub count; the others inform.
const (
	labelManagedBy     = "app.kubernetes.io/managed-by"
	labelOwnerUID      = v1alpha1.MarkOwnerUID
	labelHub           = v1alpha1.MarkHub
	annotationOwnerNS  = v1alpha1.MarkOwnerNamespace
	annotationOwner    = v1alpha1.MarkOwnerName
	annotationMetadata = v1alpha1.GroupName + "/applied-metadata"
)

// content is the desired content of the target.
type content struct {
	secretType          corev1.SecretType
	data                map[string][]byte
	labels, annotations map[string]string
	salt                string // of the hash
}

// build returns the content made from the source; hub is the ID of this hub. The error names the keys that the source
// does not have.
func build(sync *v1alpha1.OmniSecretSync, source *corev1.Secret, hub string) (content, error) {
	wanted := content{
		secretType: corev1.SecretType(cmp.Or(sync.Spec.Type, string(source.Type), string(corev1.SecretTypeOpaque))),
		data:       source.Data,
		salt:       string(sync.UID),
	}

	if len(sync.Spec.Keys) > 0 {
		wanted.data = map[string][]byte{}

		var missing []string

		for _, key := range sync.Spec.Keys {
			value, found := source.Data[key.From]
			if !found {
				missing = append(missing, fmt.Sprintf("%q", key.From))
			}

			wanted.data[key.To] = value
		}

		if len(missing) > 0 {
			return content{}, fmt.Errorf("the source has no key %s", strings.Join(missing, ", "))
		}
	}

	wanted.labels = map[string]string{labelManagedBy: managedBy, labelOwnerUID: string(sync.UID), labelHub: hub}
	wanted.annotations = map[string]string{annotationOwnerNS: sync.Namespace, annotationOwner: sync.Name}

	// What the object is known by has keys of ours, which the rules refuse in a spec.
	for key, value := range sync.Spec.Labels {
		if _, reserved := wanted.labels[key]; !reserved || key == labelManagedBy {
			wanted.labels[key] = value
		}
	}

	for key, value := range sync.Spec.Annotations {
		if _, reserved := wanted.annotations[key]; !reserved {
			wanted.annotations[key] = value
		}
	}

	// The keys that the spec asks for, so that they can be removed when it no longer does.
	if listed := listMetadata(sync.Spec.Labels, sync.Spec.Annotations); listed != "" {
		wanted.annotations[annotationMetadata] = listed
	}

	return wanted, nil
}

// listMetadata returns the keys of labels and annotations as one text.
func listMetadata(labels, annotations map[string]string) string {
	var listed []string
	for key := range labels {
		listed = append(listed, "label:"+key)
	}

	for key := range annotations {
		listed = append(listed, "annotation:"+key)
	}

	slices.Sort(listed)

	return strings.Join(listed, ",")
}

// fill writes the content into a Secret. Metadata that others added stays; metadata that an earlier content added and
// this one does not have is removed.
func (c content) fill(secret *corev1.Secret) {
	for listed := range strings.SplitSeq(secret.Annotations[annotationMetadata], ",") {
		if key, isLabel := strings.CutPrefix(listed, "label:"); isLabel {
			delete(secret.Labels, key)
		} else if key, isAnnotation := strings.CutPrefix(listed, "annotation:"); isAnnotation {
			delete(secret.Annotations, key)
		}
	}

	delete(secret.Annotations, annotationMetadata)

	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}

	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}

	maps.Copy(secret.Labels, c.labels)
	maps.Copy(secret.Annotations, c.annotations)
	secret.Type, secret.Data = c.secretType, c.data
}

// hash returns the sha256, in hexadecimal, of the object's UID, the type and the data. With the UID, people who may not
// read Secrets cannot see that two are equal. The lengths are part of it, so that no two contents give the same bytes.
func (c content) hash() string {
	sum := sha256.New()

	write := func(part []byte) {
		_ = binary.Write(sum, binary.BigEndian, uint64(len(part))) // a hash never fails
		_, _ = sum.Write(part)
	}

	write([]byte(c.salt))
	write([]byte(c.secretType))

	for _, key := range slices.Sorted(maps.Keys(c.data)) {
		write([]byte(key))
		write(c.data[key])
	}

	return hex.EncodeToString(sum.Sum(nil))
}

// secrets returns the values, to remove them from messages: an admission webhook of the workload cluster that refuses a
// Secret may quote it.
func (c content) secrets() *redact.Secrets {
	secrets := &redact.Secrets{}
	for _, value := range c.data {
		secrets.Add(string(value))
	}

	return secrets
}
