// Package kit serves one kind of the API from one Descriptor.
//
// A Descriptor holds everything that is special about a kind. The kit turns it into the strategies, the store, the
// status and scale subresources and the printed table that the generic API server needs. Rules for all kinds are
// here, once: when the generation increases, which status a new object has, which part of an object each subresource
// may write, who may delete.
//
// The descriptors in pkg/registry/omni/<kind> use the kit; pkg/registry/internal/kittest tests a descriptor through
// it.
package kit
