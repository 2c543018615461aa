package deploy

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// flow is a connection from or to one of our Pods.
type flow struct {
	program string
	egress  bool
	// peer is the other side: somePod, or an address that no Pod has.
	peer     string
	port     int
	protocol corev1.Protocol
}

const (
	somePod = "pod"
	// node is one of those on which kube-apiserver runs.
	node     = "192.0.2.1"
	internet = "203.0.113.7"
)

// TestNetworkPolicies: what each program needs gets through, and what it does not need is not open.
func TestNetworkPolicies(t *testing.T) {
	sets := valueSets(t)

	for _, tc := range []struct {
		name, values string
		flow         flow
		want         bool
	}{
		{"kube-apiserver calls", "", flow{"omni-apiserver", false, node, 8443, "TCP"}, true},
		{"Prometheus reads the API server", "", flow{"omni-apiserver", false, somePod, 8443, "TCP"}, true},
		{"somebody tries etcd", "", flow{"omni-apiserver", false, somePod, 2379, "TCP"}, false},
		{"kube-apiserver is asked", "", flow{"omni-apiserver", true, node, 6443, "TCP"}, true},
		{"kube-apiserver is asked through its Service", "", flow{"omni-apiserver", true, node, 443, "TCP"}, true},
		{"names by UDP", "", flow{"omni-apiserver", true, somePod, 53, "UDP"}, true},
		{"names by TCP, on the node", "", flow{"omni-apiserver", true, node, 53, "TCP"}, true},
		{"a webhook of the cluster", "", flow{"omni-apiserver", true, somePod, 9443, "TCP"}, true},
		{"a webhook's port in the internet", "", flow{"omni-apiserver", true, internet, 9443, "TCP"}, false},
		{"the internet", "", flow{"omni-apiserver", true, internet, 80, "TCP"}, false},
		{"the internet on a port of kube-apiserver", "", flow{"omni-apiserver", true, internet, 443, "TCP"}, true},
		{"the internet, where kube-apiserver is named", sets["everything"], flow{"omni-apiserver", true, internet, 16443, "TCP"}, false},
		{"a Pod, where kube-apiserver is named", sets["everything"], flow{"omni-apiserver", true, somePod, 16443, "TCP"}, false},
		{"an etcd without need", "", flow{"omni-apiserver", true, node, 2379, "TCP"}, false},
		{"external etcd", sets["external-etcd"], flow{"omni-apiserver", true, node, 2379, "TCP"}, true},
		{"external etcd on another port", sets["external-etcd"], flow{"omni-apiserver", true, somePod, 12379, "TCP"}, true},
		{"more egress", sets["everything"], flow{"omni-apiserver", true, node, 4317, "TCP"}, true},
		{"another port of kube-apiserver", sets["everything"], flow{"omni-apiserver", true, node, 16443, "TCP"}, true},
		{"callers are named", sets["everything"], flow{"omni-apiserver", false, somePod, 8443, "TCP"}, false},
		{"named callers", sets["everything"], flow{"omni-apiserver", false, node, 8443, "TCP"}, true},
		{"callers from elsewhere", sets["everything"], flow{"omni-apiserver", false, internet, 8443, "TCP"}, false},
		{"Omni", "", flow{"omni-controller", true, internet, 443, "TCP"}, true},
		{"a workload cluster on any port", "", flow{"omni-controller", true, node, 7443, "TCP"}, true},
		{"the kubelet probes", "", flow{"omni-controller", false, node, 8081, "TCP"}, true},
		{"Prometheus reads the controller", "", flow{"omni-controller", false, somePod, 8080, "TCP"}, true},
		{"profiles from outside", "", flow{"omni-controller", false, somePod, 6060, "TCP"}, false},
		{"controller held back", sets["everything"], flow{"omni-controller", true, node, 6443, "TCP"}, false},
		{"helm test asks kube-apiserver", "", flow{"omni-check", true, node, 6443, "TCP"}, true},
		{"helm test held back like the controller", sets["everything"], flow{"omni-check", true, node, 6443, "TCP"}, false},
		{"helm test as far as the controller", sets["everything"], flow{"omni-check", true, node, 443, "TCP"}, true},
		{"somebody calls helm test", "", flow{"omni-check", false, somePod, 8080, "TCP"}, false},
		{"no policies", "networkPolicy: {enabled: false}", flow{"omni-apiserver", true, internet, 80, "TCP"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := passes(t, decode(t, stream(mustRender(t, tc.values))), tc.flow); got != tc.want {
				t.Errorf("%+v passes: %t, want %t", tc.flow, got, tc.want)
			}
		})
	}
}

// passes reports whether policies let a connection through, as Kubernetes defines it: without a policy for the Pod and the
// direction everything passes, otherwise what one rule of any of them allows.
func passes(t *testing.T, objects []*unstructured.Unstructured, f flow) bool {
	t.Helper()

	ports := map[string]int{}
	selected := false

	for _, object := range objects {
		if kind := object.GetKind(); kind == "StatefulSet" || kind == "Deployment" {
			for name, port := range namedPorts(t, object) {
				ports[object.GetLabels()["app.kubernetes.io/name"]+" "+name] = port
			}
		}
	}

	for _, object := range objects {
		if object.GetKind() != "NetworkPolicy" {
			continue
		}

		var policy networkingv1.NetworkPolicy
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &policy, true); err != nil {
			t.Fatal(err)
		}

		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}

		if !selector.Matches(labels.Set{"app.kubernetes.io/name": f.program}) {
			continue
		}

		selected = true

		for _, rule := range rulesOf(policy, f.egress) {
			if rule.allows(f, func(name string) int { return ports[f.program+" "+name] }) {
				return true
			}
		}
	}

	return !selected
}

// rule is an ingress or egress rule.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(policy networkingv1.NetworkPolicy, egress bool) []rule {
	var rules []rule

	if egress {
		for _, r := range policy.Spec.Egress {
			rules = append(rules, rule{r.To, r.Ports})
		}

		return rules
	}

	for _, r := range policy.Spec.Ingress {
		rules = append(rules, rule{r.From, r.Ports})
	}

	return rules
}

func (r rule) allows(f flow, named func(string) int) bool {
	peer := len(r.peers) == 0
	for _, p := range r.peers {
		peer = peer || matches(p, f.peer)
	}

	port := len(r.ports) == 0
	for _, p := range r.ports {
		number := p.Port.IntValue()
		if p.Port.Type == intstr.String {
			number = named(p.Port.StrVal)
		}

		port = port || number == f.port && *p.Protocol == f.protocol
	}

	return peer && port
}

// matches reports whether a peer of a rule is the other side. A selector matches Pods and no other address.
func matches(peer networkingv1.NetworkPolicyPeer, other string) bool {
	if peer.IPBlock == nil || other == somePod {
		return peer.IPBlock == nil && other == somePod
	}

	return netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(netip.MustParseAddr(other))
}

// namedPorts are the ports of a workload's container by name.
func namedPorts(t *testing.T, workload *unstructured.Unstructured) map[string]int {
	t.Helper()

	containers, _, err := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("%s: %v, containers %v", identity(workload), err, containers)
	}

	ports := map[string]int{}

	declared, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "ports")
	for _, port := range declared {
		fields := port.(map[string]any)

		var number int
		if _, err := fmt.Sscan(fmt.Sprint(fields["containerPort"]), &number); err != nil {
			t.Fatal(err)
		}

		ports[fmt.Sprint(fields["name"])] = number
	}

	return ports
}
