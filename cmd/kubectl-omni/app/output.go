package app

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"
)

// asked reports whether there is -o.
func asked(format *genericclioptions.PrintFlags) bool {
	return format.OutputFormat != nil && *format.OutputFormat != ""
}

// print writes an object as -o asks for.
func (t *tool) print(format *genericclioptions.PrintFlags, object runtime.Object) error {
	printer, err := format.ToPrinter()
	if err != nil {
		return err
	}

	return printer.PrintObj(object, t.Out)
}

// addFormat adds -o to a command whose result is no object of the API.
func addFormat(flags *pflag.FlagSet) *string {
	return flags.StringP("output", "o", "", "Print json or yaml, for programs, instead of what is for people.")
}

// encode writes what is no object of the API, as -o asks for; done is false without -o.
func (t *tool) encode(format string, value any) (done bool, err error) {
	var text []byte

	switch format {
	case "":
		return false, nil
	case "json":
		text, err = json.MarshalIndent(value, "", "    ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		return true, fmt.Errorf("-o %s: it is json or yaml", format)
	}

	if err == nil {
		_, err = t.Out.Write(text)
	}

	return true, err
}
