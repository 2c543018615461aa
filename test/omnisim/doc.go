// Package omnisim is an Omni that fits into a test: it keeps its resources in memory, serves them through the client
// library's own protobuf services over gRPC, verifies real service-account signatures, refuses what Omni refuses with
// the same codes, and moves clusters, machine sets and machines through their phases with a small engine.
//
// The controller's tests, the demonstration and the program cmd/omnisim use it. Contract tests (package contract)
// define its behaviour: they always run against it, and against a real Omni server on request, so that it cannot drift.
//
// The files, by what they are for:
//
//   - what a request of a client meets, in this order: server, listen and tls; faults and flood; auth, accounts and token; guard and access
//     (rights of roles, and the journal of writes); validate*.go (refusals); index. Beside the state: management*.go, kubernetes_proxy and
//     workload.
//   - Omni's controllers: engine*.go, from the hardware of machines and the versions of catalogue.
//   - what tests do to it: machines, backups, fakestatus, and the faults; as a second client: connect and synctemplate.
//   - what tests ask it: queries and journal.
package omnisim
