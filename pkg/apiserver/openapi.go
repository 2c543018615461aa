package apiserver

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/spec3"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/openapi"
)

const openAPITitle = "Omni Cluster Operator"

// addOpenAPI makes the server describe its types: server-side apply and `kubectl explain` read it.
func addOpenAPI(config *genericapiserver.Config, scheme *runtime.Scheme, version string) {
	namer := openapinamer.NewDefinitionNamer(served(scheme))

	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = openAPITitle
	config.OpenAPIConfig.Info.Version = version

	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = openAPITitle
	config.OpenAPIV3Config.Info.Version = version
	config.OpenAPIV3Config.PostProcessSpec = shorten
}

// served is a scheme without the internal version, which is the same Go types and not for clients: the documents would
// list it beside v1alpha1.
func served(scheme *runtime.Scheme) *runtime.Scheme {
	described := runtime.NewScheme()

	for kind, known := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}

		if object, ok := reflect.New(known).Interface().(runtime.Object); ok {
			described.AddKnownTypeWithName(kind, object)
		}
	}

	return described
}

// shorten takes out of a document of version 3 what is said elsewhere: the deprecated paths below watch/,
// which the documents of custom resources do not have either, and all but the first sentence about the
// query parameters. Those are the same at every API of Kubernetes, and version 3 repeats them at every
// path: three quarters of the document, which clients load and keep.
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
