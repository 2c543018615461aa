// Package contract tests what this repository relies on in an Omni server, through the client library's own client:
// against the simulator of package omnisim in every test run, and against a real server with the build tag realomni and
// the variables OMNI_ENDPOINT, OMNI_SERVICE_ACCOUNT_KEY (role Admin) and OMNI_CA_FILE (see hack/test-omni.sh).
//
// A real server without machines covers a lot: the rights of roles, refusals and their codes, how templates become
// resources, and deletions. Tests that need machines are in package omnisim only.
package contract
