package omnikubeconfigexport

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

const wantKubeconfig = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Q0E=
    server: https://proxy.example.com
  name: production
contexts:
- context:
    cluster: production
    namespace: apps
    user: robot@production
  name: robot@production
current-context: robot@production
kind: Config
users:
- name: robot@production
  user:
    token: t.o.k
`

func TestRender(t *testing.T) {
	to := access{server: "https://proxy.example.com", token: "t.o.k"}
	base := shape{format: v1alpha1.FormatKubeconfig, key: "kubeconfig", cluster: "production", user: "robot", namespace: "apps", ca: []byte("CA")}

	another := base
	another.key = "workload.kubeconfig"

	argo := base
	argo.format = v1alpha1.FormatArgoCD

	argoWithoutCA := argo
	argoWithoutCA.ca = nil

	for name, test := range map[string]struct {
		shape shape
		want  map[string]string
	}{
		"default key": {base, map[string]string{"kubeconfig": wantKubeconfig, "value": wantKubeconfig}},
		"another key": {another, map[string]string{"workload.kubeconfig": wantKubeconfig}},
		"Argo CD": {argo, map[string]string{
			"name": "production", "server": "https://proxy.example.com?cluster=production",
			"config": `{"bearerToken":"t.o.k","tlsClientConfig":{"insecure":false,"caData":"Q0E="}}`,
		}},
		"Argo CD without CA": {argoWithoutCA, map[string]string{
			"name": "production", "server": "https://proxy.example.com?cluster=production",
			"config": `{"bearerToken":"t.o.k","tlsClientConfig":{"insecure":false}}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := test.shape.render(to)
			if err != nil {
				t.Fatal(err)
			}

			got := map[string]string{}
			for key, value := range data {
				got[key] = string(value)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}

			back, err := test.shape.read(data)
			if err != nil || back != to {
				t.Errorf("read back: %v, %v", back, err)
			}
		})
	}
}

func TestReadKubeconfigRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":    "",
		"no YAML":    "{",
		"no context": strings.Replace(wantKubeconfig, "current-context: robot@production", "current-context: other", 1),
		"no token":   strings.Replace(wantKubeconfig, "token: t.o.k", "username: x", 1),
		"no server":  strings.Replace(wantKubeconfig, "server: https://proxy.example.com", "server: ''", 1),
	} {
		if _, err := readKubeconfig([]byte(text)); err == nil || strings.Contains(err.Error(), "t.o.k") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Somebody wrote aliases into an exported Secret: each stands for the whole token.
func TestReadKubeconfigOfAliases(t *testing.T) {
	text := strings.Replace(wantKubeconfig, "token: t.o.k", "token: &t "+strings.Repeat("t", 30<<10), 1) +
		"more: [" + strings.TrimSuffix(strings.Repeat("*t,", 1000), ",") + "]\n"

	foreigntest.WantAllocated(t, 8<<20, func() {
		if _, err := readKubeconfig([]byte(text)); err == nil {
			t.Error("was read")
		}
	})
}

func TestArgoHashCoversEveryValue(t *testing.T) {
	of := shape{format: v1alpha1.FormatArgoCD}
	base := map[string][]byte{"name": []byte("a"), "server": []byte("b"), "config": []byte("c")}

	for key := range base {
		changed := map[string][]byte{"name": []byte("a"), "server": []byte("b"), "config": []byte("c")}
		changed[key] = []byte("x")

		if of.hash(changed) == of.hash(base) {
			t.Errorf("%s does not count", key)
		}
	}
}
