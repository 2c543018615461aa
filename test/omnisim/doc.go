// Package omnisim is an Omni that fits into a test: it keeps its resources in memory, serves them through the client
// library's own protobuf services over gRPC, verifies real service-account signatures, refuses what Omni refuses with
// the same codes, and moves clusters, machine sets and machines through their phases with a small engine.
//
// The controller's tests, the demonstration and the program cmd/omnisim use it. Contract tests (package contract)
// define its behaviour: they always run against it, and against a real Omni server on request, so that it cannot drift.
//
// The parts, a file each: server.go (life and addresses), tls.go, accounts.go and auth.go (authentication), access.go
// (rights of roles), validate*.go (refusals), management*.go (the management service), engine*.go (Omni's controllers),
// faults.go and journal.go (what a test can break and count), machines.go (hardware), backups.go (of etcd).
package omnisim
