// Package argocd runs the health script of artifacts/argocd as Argo CD does: in a Lua interpreter
// with no libraries but the basic ones, with the object as the global obj. Tests of the script and
// end-to-end tests use it.
package argocd
