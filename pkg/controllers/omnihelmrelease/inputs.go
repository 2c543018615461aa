package omnihelmrelease

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// caKey is the key of a certificate authority's certificate in a Secret.
const caKey = "ca.crt"

// missing is an object, or a key of it, that a release names and that does not
// exist. It is shown, not retried: a watch tells when it comes.
type missing struct{ message string }

// Error says what is missing, and which field names it.
func (m *missing) Error() string { return m.message }

// invalid are values that cannot be used until somebody changes them.
type invalid struct{ message string }

// Error says which source of values is wrong, and how.
func (i *invalid) Error() string { return i.message }

// source puts together where the chart is.
func (r *reconciler) source(ctx context.Context, release *v1alpha1.OmniHelmRelease) (charts.Source, error) {
	spec := &release.Spec.Chart
	source := charts.Source{Repository: spec.Repository, Chart: spec.Chart, Version: spec.Version, Digest: spec.Digest, Tenant: release.Namespace}

	if ref := spec.AuthSecretRef; ref != nil {
		data, err := r.secret(ctx, release.Namespace, ref.Name, "spec.chart.authSecretRef")
		if err != nil {
			return source, err
		}

		if source.Credentials, err = charts.CredentialsFrom(ctx, data, source.Host()); err != nil {
			return source, fmt.Errorf("Secret %q (spec.chart.authSecretRef): %w", ref.Name, err)
		}
	}

	if ref := spec.CASecretRef; ref != nil {
		ca, err := r.secretKey(ctx, release.Namespace, ref.Name, caKey, "spec.chart.caSecretRef")
		if err != nil {
			return source, err
		}

		source.CA = ca
	}

	if spec.Verify != nil {
		ref := spec.Verify.KeyringSecretRef

		keyring, err := r.secretKey(ctx, release.Namespace, ref.Name, orDefault(ref.Key, v1alpha1.DefaultKeyringKey), "spec.chart.verify.keyringSecretRef")
		if err != nil {
			return source, err
		}

		// An empty keyring verifies nothing; it must not mean that nothing is verified.
		source.Keyring = append([]byte{}, keyring...)
	}

	return source, nil
}

// values reads and merges all values.
func (r *reconciler) values(ctx context.Context, release *v1alpha1.OmniHelmRelease) (helm.Values, error) {
	spec := &release.Spec.Chart

	var (
		layers []helm.Layer
		size   int
	)

	for i := range spec.ValuesFrom {
		layer, err := r.layer(ctx, release.Namespace, &spec.ValuesFrom[i], fmt.Sprintf("spec.chart.valuesFrom[%d]", i))
		if err != nil {
			return helm.Values{}, err
		}

		if layer == nil {
			continue
		}

		// There is no end to references, and one large object can be named by all of them.
		if size += len(layer.Text); size > helm.MaxValuesBytes {
			return helm.Values{}, &invalid{fmt.Sprintf("%s: with the values before it, it has more than %d bytes: make them smaller", layer.From, helm.MaxValuesBytes)}
		}

		layers = append(layers, *layer)
	}

	if spec.Values != nil {
		layers = append(layers, helm.Layer{From: "spec.chart.values", Text: spec.Values.Raw})
	}

	values, err := helm.Merge(ctx, layers)
	if ctx.Err() != nil {
		return helm.Values{}, fmt.Errorf("read the values: %w", ctx.Err())
	}

	if err != nil {
		return helm.Values{}, &invalid{err.Error()}
	}

	return values, nil
}

// layer reads one source of values; nil if it is optional and missing.
func (r *reconciler) layer(ctx context.Context, namespace string, ref *v1alpha1.HelmValuesReference, field string) (*helm.Layer, error) {
	key := orDefault(ref.Key, v1alpha1.DefaultValuesKey)
	isSecret := ref.Kind == v1alpha1.ValuesSecret

	var (
		text []byte
		err  error
	)

	if isSecret {
		text, err = r.secretKey(ctx, namespace, ref.Name, key, field)
	} else {
		text, err = r.configMapKey(ctx, namespace, ref.Name, key, field)
	}

	var gone *missing
	if errors.As(err, &gone) && ref.Optional {
		return nil, nil //nolint:nilnil // nothing there, and nothing wrong
	}

	if err != nil {
		return nil, err
	}

	return &helm.Layer{From: fmt.Sprintf("%s %q, key %q (%s)", ref.Kind, ref.Name, key, field), Text: text, TargetPath: ref.TargetPath, Secret: isSecret}, nil
}

func (r *reconciler) secret(ctx context.Context, namespace, name, field string) (map[string][]byte, error) {
	secret := &corev1.Secret{}

	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, &missing{fmt.Sprintf("Secret %q (%s) does not exist", name, field)}
	}

	if refused := sources.Refused(err); refused != nil {
		return nil, fmt.Errorf("%s: %w", field, refused)
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", name, err)
	}

	return secret.Data, nil
}

func (r *reconciler) secretKey(ctx context.Context, namespace, name, key, field string) ([]byte, error) {
	data, err := r.secret(ctx, namespace, name, field)
	if err != nil {
		return nil, err
	}

	value, ok := data[key]
	if !ok {
		return nil, &missing{fmt.Sprintf("Secret %q (%s) has no key %q", name, field, key)}
	}

	return value, nil
}

func (r *reconciler) configMapKey(ctx context.Context, namespace, name, key, field string) ([]byte, error) {
	configMap := &corev1.ConfigMap{}

	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, configMap)
	if apierrors.IsNotFound(err) {
		return nil, &missing{fmt.Sprintf("ConfigMap %q (%s) does not exist", name, field)}
	}

	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %q: %w", name, err)
	}

	if value, ok := configMap.Data[key]; ok {
		return []byte(value), nil
	}

	if value, ok := configMap.BinaryData[key]; ok {
		return value, nil
	}

	return nil, &missing{fmt.Sprintf("ConfigMap %q (%s) has no key %q", name, field, key)}
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}

	return text
}
