package app

import (
	"fmt"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
)

const mebibyte = 1 << 20

// rendering bounds the processes that render Helm charts.
func (o *Options) rendering() controllers.Rendering {
	return controllers.Rendering{Workers: o.RenderWorkers, Memory: o.RenderMemoryMiB * mebibyte, Timeout: o.RenderTimeout}
}

// renderingMemory is how many bytes these processes may take together.
func (o *Options) renderingMemory() int64 {
	return int64(o.RenderWorkers) * o.RenderMemoryMiB * mebibyte
}

func (o *Options) validateRendering() []error {
	var problems []error

	if o.RenderWorkers < 1 {
		problems = append(problems, fmt.Errorf("--render-workers: %d is less than 1", o.RenderWorkers))
	}

	if least := int64(controllers.MinRenderMemory / mebibyte); o.RenderMemoryMiB < least {
		problems = append(problems, fmt.Errorf("--render-memory: %d is less than %d: no chart could be rendered", o.RenderMemoryMiB, least))
	}

	if o.RenderTimeout < time.Second {
		problems = append(problems, fmt.Errorf("--render-timeout: %s is less than 1s", o.RenderTimeout))
	}

	return problems
}
