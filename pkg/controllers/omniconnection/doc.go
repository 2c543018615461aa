// Package omniconnection is the controller of OmniConnection: it reads the
// service account key, opens the session with Omni that the clusters of the
// connection work with, and says what is wrong if it cannot.
//
// While an OmniCluster names the connection, the Secret with the key carries a
// finalizer, and the connection itself cannot go.
package omniconnection
