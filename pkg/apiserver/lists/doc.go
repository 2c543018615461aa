// Package lists bounds the memory that lists of our kinds take: how many are read at the same time, and what the
// answer to each of them needs while it is encoded.
//
// pkg/apiserver is the only user: Bound becomes one of its handlers, PerElement a part of its serializer. What is
// stored, and so what a list may cost, is known to pkg/registry/quota.
package lists
