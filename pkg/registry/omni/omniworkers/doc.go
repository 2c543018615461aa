// Package omniworkers describes how the API server serves OmniWorkers.
package omniworkers
