// Package omniconnection describes how the API server serves OmniConnections.
package omniconnection
