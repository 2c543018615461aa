// Package lists bounds the memory that lists of our kinds, and templates, take: how many are read at the same time, and what the
// answer to each of them needs while it is encoded.
//
// pkg/apiserver is the only user, and has the tests with a running server: Bound becomes one of its handlers.
// pkg/registry/quota knows how much is stored, and so what a list may cost.
package lists
