package template

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Mark is who owns the cluster in Omni. It is part of the template, because the next sync removes every
// annotation that the template does not have.
type Mark struct {
	// UID of the OmniCluster. It and the hub decide about ownership. Required.
	UID string
	// Hub is the ID of the hub that has this OmniCluster. Empty: not written.
	Hub string
	// Namespace of the OmniCluster, for people.
	Namespace string
	// Name of the OmniCluster, for people.
	Name string
	// ManagementCluster is the name of the management cluster, for people. Empty: not written.
	ManagementCluster string
}

// Hub is the management cluster that renders.
type Hub struct {
	// ID tells it apart from others; see package hub.
	ID string
	// Name is for people. May be empty.
	Name string
}

// MarkOf is the mark of an OmniCluster of a hub.
func MarkOf(cluster *v1alpha1.OmniCluster, hub Hub) Mark {
	return Mark{
		UID:               string(cluster.UID),
		Namespace:         cluster.Namespace,
		Name:              cluster.Name,
		Hub:               hub.ID,
		ManagementCluster: hub.Name,
	}
}

// Render writes the template: Cluster, ControlPlane, Workers by name, Machines by ID. The same documents,
// values and mark give the same bytes. The text holds what values returned, which may be secret.
//
// It checks what it needs to write a meaningful text and nothing more: whether Omni accepts the template
// is for Omni's own rules to say.
func (d *Documents) Render(values ValueFunc, mark Mark) ([]byte, error) {
	if mark.UID == "" {
		return nil, errors.New("render template: the owner's UID is missing")
	}

	documents, err := d.build(builder{values: values, within: newBudget()}, mark)
	if err != nil {
		return nil, fmt.Errorf("render template: %w", err)
	}

	text, err := newBudget().encode(len(documents), func(i int) (any, error) { return documents[i], nil })
	if err != nil {
		return nil, fmt.Errorf("render template: %w", err)
	}

	return text, nil
}

// Hash is the sha256 of a rendered template in hexadecimal, as in status.templateHash.
func Hash(rendered []byte) string {
	sum := sha256.Sum256(rendered)

	return hex.EncodeToString(sum[:])
}

func (d *Documents) build(b builder, mark Mark) ([]any, error) {
	cluster, err := b.cluster(d.Cluster, mark)
	if err != nil {
		return nil, fmt.Errorf("OmniCluster %q: %w", d.Cluster.Name, err)
	}

	controlPlane, err := b.controlPlane(d.ControlPlane)
	if err != nil {
		return nil, fmt.Errorf("OmniControlPlane %q: %w", d.ControlPlane.Name, err)
	}

	documents := []any{cluster, controlPlane}

	for i := range d.Workers {
		workers, err := b.workers(&d.Workers[i])
		if err != nil {
			return nil, fmt.Errorf("OmniWorkers %q: %w", d.Workers[i].Name, err)
		}

		documents = append(documents, workers)
	}

	for i := range d.Machines {
		machine, err := b.machine(&d.Machines[i])
		if err != nil {
			return nil, fmt.Errorf("OmniMachine %q: %w", d.Machines[i].Name, err)
		}

		documents = append(documents, machine)
	}

	return documents, nil
}
