package controllers

import "omni.texashpc.com/omni-cluster-operator/pkg/helm/render/worker"

// RenderWorker does the work of a child process that renders Helm charts, if the
// program was started as one: it returns when there is no more to do, with the code
// to exit with. Otherwise asked is false and nothing is done. It has to come first:
// a child has neither flags nor an environment, and must not get any.
func RenderWorker(arguments []string) (code int, asked bool) {
	if !worker.Asked(arguments) {
		return 0, false
	}

	return worker.Run(arguments), true
}
