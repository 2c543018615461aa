// Package omnisecretsync describes how the API server serves OmniSecretSyncs.
package omnisecretsync
