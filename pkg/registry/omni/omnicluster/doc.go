// Package omnicluster describes how the API server serves OmniClusters and their template subresource.
package omnicluster
