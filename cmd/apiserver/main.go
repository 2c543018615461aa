// Command omni-apiserver serves the API group omni.texashpc.com behind a kube-apiserver.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"omni.texashpc.com/omni-cluster-operator/cmd/apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewCommand(genericapiserver.SetupSignalContext())))
}
