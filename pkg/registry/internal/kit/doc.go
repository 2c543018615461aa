// Package kit serves one kind of the API from one Descriptor.
//
// A Descriptor says everything that is special about a kind; the kit turns it into the strategies,
// the store, the status and scale subresources and the printed table that the generic API server
// wants. All rules that hold for every kind live here, once: how a generation grows, which status a
// new object has, which part of an object each subresource may write, who may delete.
//
// The descriptors in pkg/registry/omni/<kind> are its users; pkg/registry/internal/kittest tests a
// descriptor through the kit.
package kit
