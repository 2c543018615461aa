package apiserver

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/spec3"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/openapi"
)

const openAPITitle = "Omni Cluster Operator"

// addOpenAPI makes the server publish its schemas, which server-side apply and `kubectl explain` read.
func addOpenAPI(config *genericapiserver.Config, scheme *runtime.Scheme, version string) {
	namer := openapinamer.NewDefinitionNamer(described(scheme))

	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = openAPITitle
	config.OpenAPIConfig.Info.Version = version

	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = openAPITitle
	config.OpenAPIV3Config.Info.Version = version
	config.OpenAPIV3Config.PostProcessSpec = shorten
}

// described returns the scheme without internal versions. Their Go types are those of the served versions, so the
// document would name both versions.
func described(scheme *runtime.Scheme) *runtime.Scheme {
	external := runtime.NewScheme()

	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}

		obj, err := scheme.New(gvk)
		utilruntime.Must(err) // it is known
		external.AddKnownTypeWithName(gvk, obj)
	}

	return external
}

// shorten removes redundant parts from a document of OpenAPI version 3: the deprecated paths below watch/, which the
// documents of custom resources do not have either, and all but the first sentence about each query parameter. Those
// texts are the same for every API of Kubernetes, and version 3 repeats them at every path: they are three quarters
// of the document, which clients load and keep.
func shorten(document *spec3.OpenAPI) (*spec3.OpenAPI, error) {
	for path, item := range document.Paths.Paths {
		if strings.Contains(path, "/watch/") {
			delete(document.Paths.Paths, path)

			continue
		}

		shortenParameters(item.Parameters)

		for _, operation := range []*spec3.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
			if operation != nil {
				shortenParameters(operation.Parameters)
			}
		}
	}

	return document, nil
}

func shortenParameters(parameters []*spec3.Parameter) {
	for _, parameter := range parameters {
		if first, _, more := strings.Cut(parameter.Description, ". "); more {
			parameter.Description = first + "."
		}
	}
}
