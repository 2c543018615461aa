package env

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CreateNamespace creates a namespace. With a controller manager it also waits for the
// default service account, without which pods are refused.
func (h *Hub) CreateNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := h.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}

	if h.process("kube-controller-manager") == nil {
		return nil
	}

	return Eventually(ctx, controlPlaneTimeout, "the service account of namespace "+name, func(ctx context.Context) error {
		_, err := h.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})

		return err
	})
}

// ensureNamespace is CreateNamespace for a namespace that may exist, as default does.
func (h *Hub) ensureNamespace(ctx context.Context, name string) error {
	_, err := h.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return h.CreateNamespace(ctx, name)
	}

	if err != nil {
		return fmt.Errorf("get namespace: %w", err)
	}

	return nil
}
