// Package omnisecretsync is the controller of OmniSecretSync: it copies the data
// and the type of one Secret into a workload cluster, and nothing else of it.
//
// Whose a Secret there is, and what may be done to it, is decided by pure functions
// in target.go; what it has to hold is computed in content.go. write.go and
// delete.go carry that out.
package omnisecretsync
