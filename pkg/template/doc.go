// Package template turns the objects of one cluster into an Omni cluster template: one YAML stream with
// a Cluster document, its ControlPlane, its Workers by name and its Machines by ID.
//
// It is pure. It reads no cluster, no clock and no disk, so that the API server (template subresource) and
// the controller (plan and sync) show and apply the same text for the same objects:
//
//	documents, err := template.Assemble(template.Input{...}) // which objects count, and do they fit together
//	text, err := documents.Render(values, template.MarkOf(cluster, hub))
//
// Rendering is deterministic. The bytes depend on what the objects say and never on the order in which they
// were listed, on the order of keys, or on white space in a free-form block; otherwise the tool that applied
// an object would decide whether Omni sees a change. Free-form blocks are placed as literal text, because
// Omni re-encodes a nested mapping (and turns 1.0 into 1) but keeps a text byte for byte.
package template
