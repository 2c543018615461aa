// Package omnisim is an Omni that fits into a test: it keeps its resources in memory, serves
// them through the client library's own protobuf services over gRPC, verifies real
// service-account signatures, refuses what Omni refuses with the same codes, and moves
// clusters, machine sets and machines through their phases with a small engine.
//
// It is used by the tests of the controller, by the demonstration, and as a program of its own
// (cmd/omnisim). What it promises is written down as contract tests (package contract), which
// run against it always and against a real Omni server on request, so that it cannot drift.
//
// The parts, a file each: server.go (life and addresses), tls.go, accounts.go and auth.go (who
// is calling), access.go (what a role may do), validate*.go (what is refused), management*.go
// (the management service), engine*.go (what happens afterwards), faults.go and journal.go
// (what a test can break and count), machines.go (hardware).
package omnisim
