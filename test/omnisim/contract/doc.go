// Package contract holds what this repository relies on in an Omni server, as tests that run
// through the client library's own client: against the simulator of package omnisim with every
// test run, and against a real server with the build tag realomni and the variables
// OMNI_ENDPOINT, OMNI_SERVICE_ACCOUNT_KEY (role Admin) and OMNI_CA_FILE (see hack/test-omni.sh).
//
// A real server without machines can say a lot: who may do what, what is refused and with which
// code, how templates become resources, how deletions go. What needs machines is tested in
// package omnisim only.
package contract
