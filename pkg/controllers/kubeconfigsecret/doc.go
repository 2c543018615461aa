// Package kubeconfigsecret releases the Secrets that package clusteraccess protects with a finalizer.
//
// A Secret with a kubeconfig carries v1alpha1.KubeconfigInUseFinalizer while an OmniSecretSync or OmniHelmRelease may
// need it to clean up: when a whole namespace is deleted at once, the Secret must not go before the releases are
// uninstalled. If only the Secret is deleted, it is released after a moment, unless
// the namespace is being deleted, or may be: while omni-apiserver is away, its objects cannot be.
package kubeconfigsecret
