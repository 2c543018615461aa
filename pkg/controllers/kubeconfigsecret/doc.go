// Package kubeconfigsecret lets go of the Secrets that package clusteraccess holds.
//
// A Secret with a kubeconfig carries v1alpha1.KubeconfigInUseFinalizer while an
// OmniSecretSync or OmniHelmRelease may need it to clean up: when a whole namespace
// is deleted at once, the Secret must not go before the releases are uninstalled.
// When it is the Secret alone that is deleted, it is let go after a moment.
package kubeconfigsecret
