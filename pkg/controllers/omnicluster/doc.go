// Package omnicluster is the controller of OmniCluster: it collects the documents of a cluster, renders them into one
// Omni cluster template, plans against the local copy of Omni's state, applies the plan, and reports Omni's state of
// the cluster.
//
// Package consent decides everything that could destroy something: to whom the cluster belongs, which part of a plan
// may be applied now, and what a deletion does. This package collects the facts for these decisions, and carries them
// out.
//
// Mapper says which OmniClusters a change concerns, by the indexes of package index. valuesFrom reads the texts of valueFrom, and
// SecretTexts keeps the content of Secrets out of messages.
package omnicluster
