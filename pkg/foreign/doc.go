// Package foreign reads text that is not ours: request bodies, values, manifests, patches and kubeconfigs that
// users keep in Secrets, files of charts, answers of other servers.
//
// A bound on the length of such a text says little about the memory that it takes once it is read: 20,000 YAML
// aliases of one value of 60 KB are a text of 121 KB and 1.2 GB of values, and a list of empty objects takes a
// hundred times its length. So Limits count what a text becomes, and everything here decides before anything is
// expanded. What is being read at the same time shares one budget of the process.
//
// The limits are the callers': each knows what is real in its field. The texts of errors never quote the input.
package foreign
