package omnihelmrelease

import (
	"cmp"
	"context"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
)

// caKey is the key of a certificate authority's certificate in a Secret.
const caKey = "ca.crt"

// invalid are values that cannot be used until somebody changes them.
type invalid struct{ message string }

// Error says which source of values is wrong, and how.
func (i *invalid) Error() string { return i.message }

// source puts together where the chart is.
func (r *reconciler) source(ctx context.Context, release *v1alpha1.OmniHelmRelease) (charts.Source, error) {
	spec := &release.Spec.Chart
	source := charts.Source{Repository: spec.Repository, Chart: spec.Chart, Version: spec.Version, Digest: spec.Digest, Tenant: release.Namespace}

	if ref := spec.AuthSecretRef; ref != nil {
		secret, err := sources.Secret(ctx, r.live, sources.Reference{Namespace: release.Namespace, Name: ref.Name, Field: "spec.chart.authSecretRef"})
		if err != nil {
			return source, err
		}

		if source.Credentials, err = charts.CredentialsFrom(ctx, secret.Data, source.Host()); err != nil {
			return source, fmt.Errorf("Secret %q (spec.chart.authSecretRef): %w", ref.Name, err)
		}
	}

	if ref := spec.CASecretRef; ref != nil {
		ca, err := sources.SecretValue(ctx, r.live, sources.Reference{Namespace: release.Namespace, Name: ref.Name, Key: caKey, Field: "spec.chart.caSecretRef"})
		if err != nil {
			return source, err
		}

		source.CA = ca
	}

	if spec.Verify != nil {
		ref := spec.Verify.KeyringSecretRef

		keyring, err := sources.SecretValue(ctx, r.live, sources.Reference{
			Namespace: release.Namespace, Name: ref.Name, Key: cmp.Or(ref.Key, v1alpha1.DefaultKeyringKey), Field: "spec.chart.verify.keyringSecretRef",
		})
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
	from := sources.Reference{Namespace: namespace, Name: ref.Name, Key: cmp.Or(ref.Key, v1alpha1.DefaultValuesKey), Field: field}
	isSecret := ref.Kind == v1alpha1.ValuesSecret

	read := sources.ConfigMapValue
	if isSecret {
		read = sources.SecretValue
	}

	text, err := read(ctx, r.live, from)
	if ref.Optional && sources.Missing(err) != nil {
		return nil, nil //nolint:nilnil // nothing there, and nothing wrong
	}

	if err != nil {
		return nil, err
	}

	return &helm.Layer{From: fmt.Sprintf("%s %q, key %q (%s)", ref.Kind, ref.Name, from.Key, field), Text: text, TargetPath: ref.TargetPath, Secret: isSecret}, nil
}
