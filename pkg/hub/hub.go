// Package hub tells the management clusters apart that may hold the same objects: one that was restored from a snapshot
// of another has objects with the same UIDs. The ID of a hub is part of every ownership mark that is written outside of it.
package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// FlagID is the flag of both programs that takes the place of what the hub says.
	FlagID = "hub-id"
	// FlagIDUsage explains it.
	FlagIDUsage = "ID of this management cluster in ownership marks, instead of the UID of its Namespace kube-system: needed where " +
		"that may not be read, and for a copy of a management cluster beside the first one. 1 to 63 characters, valid as the " +
		"value of a label. omni-apiserver and omni-controller need the same, and it must not change."
)

const (
	// identifyTimeout bounds the question as a whole, refusedTimeout how long it may be refused: while a hub starts it
	// knows no bindings yet, and an installation makes them in any order.
	identifyTimeout = time.Minute
	refusedTimeout  = 20 * time.Second
	// callTimeout bounds one call, pause is what lies between two.
	callTimeout = 15 * time.Second
	pause       = time.Second
)

// ValidateID checks a value of --hub-id.
func ValidateID(id string) error {
	if id == "" {
		return errors.New("the ID of a hub is empty")
	}

	if problems := validation.IsValidLabelValue(id); len(problems) > 0 {
		return fmt.Errorf("%q is not valid as the value of a label: %s", id, problems[0])
	}

	return nil
}

// Identify returns the ID of the hub: the given one, or the UID of its Namespace kube-system. It waits a while for a hub
// that does not answer. role is the ClusterRole that should allow the question, for the error.
func Identify(ctx context.Context, config *rest.Config, given, role string) (string, error) {
	if given != "" {
		return given, nil
	}

	bounded := rest.CopyConfig(config)
	bounded.Timeout = callTimeout

	client, err := metadata.NewForConfig(bounded)
	if err != nil {
		return "", fmt.Errorf("find out the ID of the hub: %w", err)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, identifyTimeout, fmt.Errorf("gave up after %s", identifyTimeout))
	defer cancel()

	id, err := ask(ctx, client)
	if err != nil {
		return "", fmt.Errorf("find out the ID of this hub, by which marks of ownership tell management clusters apart: %w; "+
			"either allow this program to get the Namespace %s (ClusterRole %s), or give --%s",
			err, metav1.NamespaceSystem, role, FlagID)
	}

	return id, nil
}

func ask(ctx context.Context, client metadata.Interface) (string, error) {
	var refusedSince time.Time

	for {
		id, err := readID(ctx, client)
		if err == nil {
			return id, nil
		}

		switch {
		case !apierrors.IsForbidden(err):
			refusedSince = time.Time{}
		case refusedSince.IsZero():
			refusedSince = time.Now()
			klog.FromContext(ctx).Info("Waiting for the right to read the hub's ID", "reason", err.Error())
		case time.Since(refusedSince) >= refusedTimeout:
			return "", err
		}

		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

func readID(ctx context.Context, client metadata.Interface) (string, error) {
	namespace, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", err
	}

	return string(namespace.UID), ValidateID(string(namespace.UID))
}
