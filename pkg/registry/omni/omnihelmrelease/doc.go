// Package omnihelmrelease describes how the API server serves OmniHelmReleases.
package omnihelmrelease
