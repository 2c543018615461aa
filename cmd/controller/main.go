// Command omni-controller applies the objects of the API group omni.texashpc.com to Omni.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	ctrl "sigs.k8s.io/controller-runtime"

	"omni.texashpc.com/omni-cluster-operator/cmd/controller/app"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
)

func main() {
	if code, asked := controllers.RenderWorker(os.Args); asked {
		os.Exit(code)
	}

	os.Exit(cli.Run(app.NewCommand(ctrl.SetupSignalHandler())))
}
