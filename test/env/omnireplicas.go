package env

import (
	"context"
	"fmt"
)

// OmniReplicas are several omni-apiservers on one external etcd cluster, behind one address.
type OmniReplicas struct {
	// Front is the address that kube-apiserver knows.
	Front *Front
	// Replicas are called omni-apiserver-0 and so on. Each is ready when its own readiness check passes.
	Replicas []*OmniAPIServer
}

// StartOmniReplicas starts so many omni-apiservers on the etcd cluster, registers the APIService, and returns when all
// are ready and the API is served through kube-apiserver. It takes the place of StartOmniAPIServer. The context bounds
// the start only.
func (h *Hub) StartOmniReplicas(ctx context.Context, etcd *EtcdCluster, count int, options OmniAPIServerOptions) (*OmniReplicas, error) {
	if err := h.buildAPIServer(ctx, &options); err != nil {
		return nil, err
	}

	front, err := h.startFront()
	if err != nil {
		return nil, err
	}

	if err := h.prepareOmniAPIServer(ctx, front.port()); err != nil {
		return nil, err
	}

	r := &OmniReplicas{Front: front}

	for i := range count {
		replica, err := h.newOmniAPIServer(fmt.Sprintf("%s-%d", apiServerName, i), etcd.Args(), options)
		if err != nil {
			return nil, err
		}

		replica.component.ready = replica.Ready
		r.Replicas = append(r.Replicas, replica)
		front.add(replica.address)

		if err := replica.launch(ctx); err != nil {
			return nil, err
		}
	}

	return r, Eventually(ctx, componentTimeout, "the API to be served by all replicas", func(ctx context.Context) error {
		if ready := front.Ready(); ready < count {
			return fmt.Errorf("%d of %d replicas get connections", ready, count)
		}

		return h.apiServed(ctx)
	})
}

// startFront makes a front that Stop closes.
func (h *Hub) startFront() (*Front, error) {
	at, err := h.reservePort()
	if err != nil {
		return nil, err
	}

	front, err := newFront(at, h.creds.cluster.certPEM)
	if err != nil {
		return nil, err
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.fronts = append(h.fronts, front)

	return front, nil
}
