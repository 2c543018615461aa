// Package charts finds and downloads Helm charts, from HTTP repositories and
// from OCI registries, for people who may not be trusted with the controller's
// own network position.
//
// A Fetcher works in two steps. Resolve says which chart a Source means now: its
// version and the digest of its archive, which is signed by a key of the keyring
// if there is one. That is all an idle release needs, and costs no download of a
// chart; a provenance file is read once for as long as the process runs. Open
// returns the chart itself, checked against that digest; it downloads only what
// the cache does not hold.
//
// What it guarantees:
//   - No connection is made to a loopback, link-local, multicast, unspecified or
//     cloud metadata address unless it is allowed by Options.Guard. The
//     check is made on the address that is dialled, so redirects and names that
//     resolve to something else later change nothing.
//   - Credentials go to the host of the repository and, for registries, to the
//     token service of the same domain; never anywhere else.
//   - Everything is bounded: sizes (also unpacked), time, redirects, parallel
//     downloads, the cache.
//   - Indexes, provenance files and keyrings are parsed in the worker processes of
//     package render, never here.
//   - Nothing is read from or written to a disk or the environment: no proxy
//     variables, no Helm or Docker configuration, no plugins, no file URLs.
//
// Errors are of type *Error, and hold nothing secret.
package charts
