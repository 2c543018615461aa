// Package omnicontrolplane describes how the API server serves OmniControlPlanes.
package omnicontrolplane
