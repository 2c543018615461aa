// Command kubectl-omni is the kubectl plugin: kubectl omni. It shows what belongs to a cluster and what it waits for, and does with
// the user's own rights what a kubectl patch could do as well.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"omni.texashpc.com/omni-cluster-operator/cmd/kubectl-omni/app"
)

func main() {
	os.Exit(app.Main(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args[1:]))
}
