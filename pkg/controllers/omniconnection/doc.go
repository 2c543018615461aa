// Package omniconnection is the controller of OmniConnection: it reads the service account key, opens the session with
// Omni that the clusters of the connection share, and reports why if it cannot.
//
// While an OmniCluster refers to the connection, the Secret with the key carries a finalizer, and the connection itself
// is not removed.
package omniconnection
