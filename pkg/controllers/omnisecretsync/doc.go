// Package omnisecretsync is the controller of OmniSecretSync: it copies the data and the type of one Secret into a
// workload cluster, and nothing else of the Secret.
//
// Pure functions decide: target.go to whom a Secret there belongs and what may be done to it, content.go what it has to
// contain, locations.go where copies are or may be. write.go and delete.go carry that out.
package omnisecretsync
