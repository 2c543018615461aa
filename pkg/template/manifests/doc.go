// Package manifests is the way back of package template: it turns an Omni cluster template into the objects
// that render to it, and writes objects as manifests for people.
//
//	objects, err := manifests.FromTemplate(ctx, text, manifests.Options{...})
//	err = manifests.Write(writer, objects.Manifests())
//
// It is pure, and it lives beside package template because the two must agree: what FromTemplate makes of a
// template renders to a template that Omni cannot tell from the first one. Only the export of the controller
// uses it; the API server never does.
//
// A content (a patch, a group of Kubernetes manifests) becomes an inline block if rendering that block gives
// back the same bytes, and if every tool on the way to the API keeps it as it is. Omni compares contents byte
// for byte, so everything else (comments, another indentation, a fraction, null) goes into a ConfigMap and is
// read through valueFrom, which changes nothing.
package manifests
