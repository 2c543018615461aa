// Package workflows holds the tests of GitHub's workflows: what .github/workflows may use and do. They look at the files
// only; that the files are valid is what hack/verify-workflows.sh says.
package workflows
