package app

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// print writes objects as -o asks for; done is false without -o.
func (t *tool) print(format *genericclioptions.PrintFlags, object runtime.Object) (done bool, err error) {
	if format.OutputFormat == nil || *format.OutputFormat == "" {
		return false, nil
	}

	printer, err := format.ToPrinter()
	if err != nil {
		return true, err
	}

	return true, printer.PrintObj(object, t.Out)
}
