package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/omni/client/pkg/client/management"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// The names that the chart of the operator with CRDs gives, and what it marks objects with.
const (
	formerNamespace  = "omni-cluster-operator-system"
	formerDeployment = "omni-cluster-operator-controller-manager"
	formerWebhook    = "omni-cluster-operator-validating-webhook-configuration"
	formerFinalizer  = "omni.texashpc.com/finalizer"

	formerExports, formerSyncs, formerReleases = 6, 7, 7
)

// formerLabels are on every object of its chart.
const formerLabels = `app.kubernetes.io/name: omni-cluster-operator, app.kubernetes.io/instance: omni-cluster-operator, helm.sh/chart: omni-cluster-operator-0.4.0`

// formerInstallation is what else its release has, with namespace.create, and Omni's key beside it.
const formerInstallation = `apiVersion: v1
kind: Namespace
metadata: {name: ` + formerNamespace + `, labels: {` + formerLabels + `}}
---
apiVersion: v1
kind: Service
metadata: {name: webhook-service, namespace: ` + formerNamespace + `, labels: {` + formerLabels + `}}
spec: {ports: [{port: 443}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: omni-cluster-operator-manager-role, labels: {` + formerLabels + `}}
---
apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.omni-cluster-operator.v1, namespace: ` + formerNamespace + `, labels: {owner: helm, name: omni-cluster-operator}}
---
apiVersion: v1
kind: Secret
metadata: {name: omni-service-account, namespace: ` + formerNamespace + `}
`

// formerOperator is its Deployment, and a webhook that refuses everything because nobody answers it.
const formerOperator = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ` + formerDeployment + `
  namespace: ` + formerNamespace + `
  labels: {` + formerLabels + `, control-plane: controller-manager}
spec:
  replicas: 2
  selector: {matchLabels: {control-plane: controller-manager}}
  template:
    metadata: {labels: {control-plane: controller-manager}}
    spec: {containers: [{name: manager, image: manager}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: ` + formerWebhook + `
  labels: {app.kubernetes.io/name: omni-cluster-operator}
webhooks:
  - name: all.omni.texashpc.com
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: {service: {name: webhook-service, namespace: ` + formerNamespace + `}}
    rules: [{apiGroups: [omni.texashpc.com], apiVersions: ["*"], operations: [CREATE, UPDATE, DELETE], resources: ["*"]}]
`

// formerKinds are the resources of its definitions that we have, too.
var formerKinds = []string{
	"omniconnections", "omniclusters", "omnicontrolplanes", "omniworkers", "omnimachines", "omnikubeconfigexports", "omnisecretsyncs", "omnihelmreleases",
}

// former is a management cluster with the operator with CRDs, 33 of its objects, and what it has made of them: clusters
// in Omni, and Secrets and releases in a workload cluster. The operator itself is played by a Deployment whose Pods nobody
// runs, and by somebody who notes what it would destroy.
type former struct {
	*fleet

	workload *env.Hub
	apps     string // a namespace of the test's own in the workload cluster
	charts   *chartserver.Repository

	mu        sync.Mutex
	destroyed []string // what the operator would have destroyed
}

func newFormer(t *testing.T) *former {
	t.Helper()

	on := newFleet(t)
	m := &former{workload: workloads.Shared(t), apps: on.name, charts: chartserver.StartRepository()}
	t.Cleanup(m.charts.Close)
	m.charts.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	hub, err := env.StartHub(t.Context(), env.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	m.fleet = &fleet{space: &space{t: t, name: on.name, hub: &env.Stack{Hub: hub}}, omni: on.omni, key: on.key, machines: on.machines}
	m.explainsFailure()
	m.run("apply", "-f", "testdata/former-definitions.yaml")
	m.run("wait", "customresourcedefinitions", "--all", "--for=condition=Established", "--timeout=60s")
	m.run("create", "namespace", m.name)
	m.applyFormer(formerInstallation)
	m.makeClusters()
	m.makeWorkload()
	m.makeObjects()
	m.makeRendered()
	m.startOperator()

	return m
}

// What the user of demo has in patches and manifests.
const (
	formerClusterPatch = `{name: network, inline: {machine: {network: {nameservers: [10.0.0.53], interfaces: [{interface: eth0, dhcp: true, mtu: 9000}]},
    sysctls: {net.core.somaxconn: "65535", vm.swappiness: "0"}, kubelet: {extraArgs: {rotate-server-certificates: "true", v: "2"}}},
    cluster: {network: {podSubnets: [10.244.0.0/16]}, apiServer: {certSANs: [api.example.org, 192.0.2.1]}}}}`
	formerMachinePatch = `{name: disk, inline: {machine: {install: {disk: /dev/sda, wipe: false}, env: {EMPTY: "", SCRIPT: "one\ntwo\n", ANSWER: "yes"}}}}`
	formerManifests    = `{name: base, mode: full, inline: [{apiVersion: v1, kind: Namespace, metadata: {name: base, labels: {size: "1"}}},
    {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: base}, data: {address: 10.0.0.0/8, interval: 30s, "on": "off"}}]}`
)

// makeClusters makes the clusters in Omni, with a template as the operator would have written it: it handed blocks to Omni's
// library as they are, which writes them in a format of its own.
func (m *former) makeClusters() {
	m.t.Helper()

	plain := fmt.Sprintf(plainCluster, "demo", m.machines[0])
	demo := strings.Replace(plain, "kubernetes: {version: v1.35.1}", "kubernetes:\n  version: v1.35.1\n  manifests: ["+formerManifests+", "+formerRenderedManifests+"]\npatches:\n- "+
		formerClusterPatch+"\n- "+formerRenderedPatch, 1) +
		fmt.Sprintf("---\nkind: Workers\nname: demo-w\nmachineClass: {name: %s, size: 2}\n---\nkind: Machine\nname: %s\nlabels: {rack: \"7\"}\npatches:\n- %s\n", pool, m.machines[0], formerMachinePatch)

	if !strings.Contains(demo, formerManifests) {
		m.t.Fatal(demo)
	}

	m.made(demo, fmt.Sprintf(plainCluster, "idle", m.machines[1]), fmt.Sprintf(plainCluster, "other", m.machines[2]))
	m.wait("the clusters in Omni", func() error {
		if got := m.view("demo").Machines["demo-demo-w"]; got != 2 {
			return fmt.Errorf("demo has %d workers", got)
		}

		return nil
	})
}

// makeWorkload makes what the operator has copied and installed.
func (m *former) makeWorkload() {
	t := m.t
	t.Helper()

	clients := m.workload.Client().CoreV1()
	must(clients.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.apps}}, metav1.CreateOptions{}))(t)

	for i := range formerSyncs {
		must(clients.Secrets(m.apps).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("pull-%d", i), Annotations: map[string]string{
					"omni.texashpc.com/secret-sync-uid": fmt.Sprintf("0f0f0f0f-0000-4000-8000-%012d", i), "omni.texashpc.com/secret-sync-name": fmt.Sprintf("pull-%d", i),
				},
			},
			Type: corev1.SecretTypeBasicAuth, StringData: map[string]string{"username": "robot", "password": "one"},
		}, metav1.CreateOptions{}))(t)
	}

	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &m.workload.KubeconfigPath
	*flags.Namespace = m.apps

	chart := must(loader.LoadArchive(strings.NewReader(string(chartserver.ConfigMapChart("demo", "1.0.0").Pack()))))(t)

	for i := range formerReleases {
		config := action.NewConfiguration()
		if err := config.Init(flags, m.apps, "secret"); err != nil {
			t.Fatal(err)
		}

		install := action.NewInstall(config)
		install.ReleaseName, install.Namespace = fmt.Sprintf("app-%d", i), m.apps
		install.WaitStrategy, install.Timeout, install.ServerSideApply = kube.HookOnlyStrategy, time.Minute, true
		must(install.RunWithContext(t.Context(), chart, nil))(t)
	}
}

// formerMeta is the metadata of an object that the operator holds.
func formerMeta(manifest string) string {
	return strings.Replace(manifest, "metadata:\n", "metadata:\n  finalizers: ["+formerFinalizer+"]\n", 1)
}

// makeObjects makes the objects, as their users wrote them and the operator has marked them.
func (m *former) makeObjects() {
	m.t.Helper()

	connection := func(name, endpoint string) string {
		return fmt.Sprintf("apiVersion: omni.texashpc.com/v1alpha1\nkind: OmniConnection\nmetadata:\n  name: %s\nspec:\n  endpoint: %s\n  insecureSkipTLSVerify: true\n"+
			"  auth: {serviceAccountSecretRef: {name: key}}", name, endpoint)
	}

	objects := []string{
		connection("omni", m.omni.Endpoint()), connection("gone", "https://127.0.0.1:1"),
		strings.Replace(clusterManifest("demo", "  deletePolicy: {destroyMachines: true}", "  patches:", "  - "+formerClusterPatch),
			"    version: v1.35.1\n", "    version: v1.35.1\n    manifests:\n    - "+formerManifests+"\n", 1), clusterManifest("idle", "  suspend: true", "  syncInterval: 10s"),
		clusterManifest("other", "  labels: {changed: by-hand}"),
		controlPlaneManifest("demo-cp", "demo", m.machines[0]), controlPlaneManifest("idle-cp", "idle", strings.ToUpper(m.machines[1])),
		controlPlaneManifest("other-cp", "other", m.machines[2]),
		workersManifest("demo-w", "demo", classOf(pool, `"2"`)), machineManifest(m.machines[0], "demo", `  labels: {rack: "7"}`, "  patches:", "  - "+formerMachinePatch),
	}

	ready := []string{"omniconnection/omni", "omnicluster/demo"}

	for i := range formerExports {
		ready = append(ready, fmt.Sprintf("omnikubeconfigexport/robot-%d", i))
		objects = append(objects, exportManifest(fmt.Sprintf("robot-%d", i), fmt.Sprintf("access-%d", i), fmt.Sprintf("robot-%d", i), "deployers"))
	}

	for i := range formerSyncs {
		ready = append(ready, fmt.Sprintf("omnisecretsync/pull-%d", i))
		objects = append(objects, m.formerSync(i))
	}

	for i := range formerReleases {
		ready = append(ready, fmt.Sprintf("omnihelmrelease/app-%d", i))
		objects = append(objects, m.formerRelease(i))
	}

	if len(objects) != 30 {
		m.t.Fatalf("there are %d objects", len(objects))
	}

	for i := range objects {
		objects[i] = formerMeta(objects[i])
	}

	m.apply(secretManifest("key", m.key, m.omni.Endpoint()), kubeconfigManifest(m.t, "demo-kubeconfig", m.workload), sourceManifest("one"))
	m.exportSecrets()
	m.apply(objects...)

	for _, object := range ready {
		m.wasReady(object)
	}
}

func (m *former) formerSync(i int) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniSecretSync
metadata:
  name: pull-%[1]d
spec:
  clusterRef: {name: demo}
  kubeconfigSecretRef: {name: demo-kubeconfig}
  sourceSecretRef: {name: registry}
  targetSecretRef: {name: pull-%[1]d, namespace: %[2]s}
  deletionPolicy: Delete`, i, m.apps)
}

func (m *former) formerRelease(i int) string {
	return fmt.Sprintf(`apiVersion: omni.texashpc.com/v1alpha1
kind: OmniHelmRelease
metadata:
  name: app-%d
spec:
  clusterRef: {name: demo}
  kubeconfigSecretRef: {name: demo-kubeconfig}
  namespace: %s
  deletionPolicy: Uninstall
  atomic: true
  chart:
    repository: %s
    chart: demo
    version: 1.0.0`, i, m.apps, m.charts.URL())
}

// wasReady writes the status that the operator would have written.
func (m *former) wasReady(object string) {
	m.t.Helper()
	m.run("patch", object, "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Synced","message":"","lastTransitionTime":"2026-08-01T00:00:00Z","observedGeneration":1}]}}`)
}

// exportSecrets writes the kubeconfigs that the operator has exported, with its marks.
func (m *former) exportSecrets() {
	t := m.t
	t.Helper()

	client := must(omnisim.Connect(m.omni.Endpoint(), m.key, m.omni.CAPEM()))(t)
	defer client.Close()

	var secrets []string

	for i := range formerExports {
		raw := must(client.Management().WithCluster("demo").Kubeconfig(t.Context(), management.WithServiceAccount(24*time.Hour, fmt.Sprintf("robot-%d", i), "deployers")))(t)
		secrets = append(secrets, fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: access-%[1]d
  labels: {omni.texashpc.com/cluster: demo, omni.texashpc.com/kubeconfig-export-uid: 0f0f0f0f-1111-4000-8000-%012[1]d}
  annotations:
    omni.texashpc.com/kubeconfig-export-name: robot-%[1]d
    omni.texashpc.com/kubeconfig-export-namespace: %[2]s
    omni.texashpc.com/kubeconfig-expiration-time: %[3]q
data:
  kubeconfig: %[4]s`, i, m.name, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339), base64.StdEncoding.EncodeToString(raw)))
	}

	m.apply(secrets...)
	m.omni.ForgetRequests()
}

// applyFormer applies objects of the operator's own namespace, not of the test's.
func (m *former) applyFormer(manifests string) {
	m.t.Helper()

	if _, _, err := m.hub.KubectlInput(m.t.Context(), strings.NewReader(manifests), "apply", "-f", "-"); err != nil {
		m.t.Fatal(err)
	}
}

// startOperator begins to play the operator.
func (m *former) startOperator() {
	m.t.Helper()

	m.applyFormer(formerOperator)
	m.wait("the webhook to refuse", func() error {
		if _, err := m.try("label", "omnicluster", "demo", "refused=yes", "--dry-run=server"); err != nil {
			return nil
		}

		return errors.New("it does not")
	})

	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan struct{})

	go func() {
		defer close(done)
		m.play(ctx)
	}()

	m.t.Cleanup(func() { cancel(); <-done })
}

// play does what the operator would: as long as it runs, each object that is being deleted and that it holds has what it
// made destroyed.
func (m *former) play(ctx context.Context) {
	objects := must(dynamic.NewForConfig(m.hub.RESTConfig()))(m.t)

	for ctx.Err() == nil {
		deployment, err := m.hub.Client().AppsV1().Deployments(formerNamespace).Get(ctx, formerDeployment, metav1.GetOptions{})
		if err == nil && *deployment.Spec.Replicas > 0 {
			m.destroyDeleted(ctx, objects)
		}

		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (m *former) destroyDeleted(ctx context.Context, objects dynamic.Interface) {
	for _, kind := range slices.Concat(formerKinds, formerRenderedKinds) {
		list, err := objects.Resource(v1alpha1.SchemeGroupVersion.WithResource(kind)).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}

		for i := range list.Items {
			if one := &list.Items[i]; one.GetDeletionTimestamp() != nil && slices.Contains(one.GetFinalizers(), formerFinalizer) {
				m.mu.Lock()
				m.destroyed = append(m.destroyed, kind+" "+one.GetName())
				m.mu.Unlock()
			}
		}
	}
}

// objects are the specs, finalizers and labels of all objects, by kind and name.
func (m *former) objects() map[string]string {
	m.t.Helper()

	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(m.run("get", strings.Join(slices.Concat(formerKinds, formerRenderedKinds), ","), "-o", "json")), &list); err != nil {
		m.t.Fatal(err)
	}

	found := map[string]string{}

	for _, item := range list.Items {
		metadata, _ := item["metadata"].(map[string]any)
		found[fmt.Sprint(item["kind"], " ", metadata["name"])] = string(must(json.Marshal([]any{item["spec"], metadata["finalizers"], metadata["labels"]}))(m.t))
	}

	return found
}

// consumed is what others use of what the operator has made: UID and content.
func (m *former) consumed() map[string]string {
	t := m.t
	t.Helper()

	found := map[string]string{}

	for i := range formerExports {
		secret := must(m.hub.Client().CoreV1().Secrets(m.name).Get(t.Context(), fmt.Sprintf("access-%d", i), metav1.GetOptions{}))(t)
		found[secret.Name] = string(secret.UID) + " " + string(secret.Data["kubeconfig"])
	}

	for i := range formerSyncs {
		secret := must(m.workload.Client().CoreV1().Secrets(m.apps).Get(t.Context(), fmt.Sprintf("pull-%d", i), metav1.GetOptions{}))(t)
		found[secret.Name] = fmt.Sprint(secret.UID, " ", secret.Type, " ", secret.Data)
	}

	for i := range formerReleases {
		installed := must(m.workload.Client().CoreV1().ConfigMaps(m.apps).Get(t.Context(), fmt.Sprintf("app-%d", i), metav1.GetOptions{}))(t)
		found[installed.Name] = fmt.Sprint(installed.UID, " ", installed.Data)
	}

	return found
}
