package omnisim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// kindsOfTalos114 are the kinds of documents that Talos 1.14.1, with which this repository is built, has, and Talos
// 1.14.0-alpha.1 does not. Omni 1.9.3 is built with the latter (its go.mod says so).
const kindsOfTalos114 = `BGPInstanceConfig CRIBaseRuntimeSpecConfig CRICustomizationConfig ContainerConfig DiscoveryIdentityConfig
DiscoveryServiceConfig EtcFileConfig FilesystemScrubConfig FilesystemTrimConfig KernelModuleConfig KubeAPIServerCAConfig
KubeAPIServerConfig KubeAdmissionControlConfig KubeAggregatorCAConfig KubeAuditPolicyConfig KubeAuthenticationConfig
KubeAuthorizerConfig KubeClusterConfig KubeCoreDNSConfig KubeCredentialProviderConfig KubeExternalManifestConfig
KubeFlannelCNIConfig KubeInlineManifestConfig KubeNetworkConfig KubeNodeConfig KubePrismConfig KubeProxyConfig
KubeServiceAccountConfig KubeStaticPodConfig KubeTalosAPIAccessConfig KubeletConfig LVMLogicalVolumeConfig
LVMVolumeGroupConfig RAIDArrayConfig SecurityProfileConfig SysctlConfig SysfsConfig UdevRulesConfig UnattendedInstallConfig
VethConfig`

// validateTalos is the client library's check of a patch, as a server makes it that is built with another version of Talos.
func (r rules) validateTalos(text []byte) error {
	if r.newerTalos {
		text, _ = template.CheckablePatch(text)

		return omni.ValidateConfigPatch(text)
	}

	if r.version.from(since10) {
		return omni.ValidateConfigPatch(text)
	}

	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return omni.ValidateConfigPatch(text)
		}

		var header struct {
			Kind string `yaml:"kind"`
		}

		if document.Decode(&header) == nil && slices.Contains(strings.Fields(kindsOfTalos114), header.Kind) {
			return fmt.Errorf("error decoding document v1alpha1/%s/ (line %d): %q %q: not registered", header.Kind, document.Line, header.Kind, "v1alpha1")
		}
	}
}
