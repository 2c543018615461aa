package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/openapi"
)

const openAPITitle = "Omni Cluster Operator"

// addOpenAPI makes the server describe its types: server-side apply and `kubectl explain` read it.
func addOpenAPI(config *genericapiserver.Config, scheme *runtime.Scheme, version string) {
	namer := openapinamer.NewDefinitionNamer(scheme)

	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = openAPITitle
	config.OpenAPIConfig.Info.Version = version

	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = openAPITitle
	config.OpenAPIV3Config.Info.Version = version
}
