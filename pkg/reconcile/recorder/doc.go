// Package recorder records Kubernetes events (events.k8s.io/v1) in bounded memory.
package recorder
