package e2ecertmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// eventuallyTimeout is for slow machines: no step is judged by its time.
const eventuallyTimeout = 5 * time.Minute

// Certificates, each with a Secret of the same name.
const (
	authority = "omni-apiserver-ca"
	serving   = "omni-apiserver-tls"
	metrics   = "omni-controller-metrics-tls"
)

var certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}

// installation is the chart, installed in a hub beside cert-manager.
type installation struct {
	hub      *env.Hub
	built    env.BuiltCertManager
	binaries env.Binaries
	helm     *helmClient
	network  postRenderer
	kubelet  *kubelet
	load     *load
	history  *history

	apiserver, controller         *env.Pod
	apiserverRuns, controllerRuns *env.Program
	issues, injects               *env.CertManagerProcess

	ours   versioned.Interface
	trusts aggregator.Interface
	kinds  dynamic.Interface
}

// newInstallation starts a hub and cert-manager, with the definitions and the rights of cert-manager's own chart.
func newInstallation(t *testing.T) *installation {
	t.Helper()

	s := &installation{}

	var err error
	if s.binaries, err = env.BuildBinaries(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}

	if s.built, err = env.EnsureCertManager(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}

	if s.hub, err = env.StartHub(t.Context(), env.Options{Dir: t.TempDir(), Progress: t.Output()}); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if t.Failed() {
			s.printLogs(t)
		}

		if err := s.hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	var errs [3]error
	s.ours, errs[0] = versioned.NewForConfig(s.hub.RESTConfig())
	s.trusts, errs[1] = aggregator.NewForConfig(s.hub.RESTConfig())
	s.kinds, errs[2] = dynamic.NewForConfig(s.hub.RESTConfig())

	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}

	s.startCertManager(t)
	s.kubectl(t, "", "apply", "-f", filepath.Join(root, "artifacts", "kustomize", "base", "namespace.yaml"))

	return s
}

func (s *installation) startCertManager(t *testing.T) {
	t.Helper()

	s.kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(s.built.Source, "deploy", "crds"))
	s.kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all")
	s.kubectl(t, "", "create", "namespace", env.CertManagerNamespace)

	rights, err := encode(render(t, filepath.Join(s.built.Source, "deploy", "charts", "cert-manager"), env.CertManagerNamespace, env.CertManagerNamespace,
		"rbac.yaml", "serviceaccount.yaml", "cainjector-rbac.yaml", "cainjector-serviceaccount.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	s.kubectl(t, rights, "apply", "--server-side", "-f", "-")
	s.startIssuing(t)
	s.startInjecting(t)
}

func (s *installation) startIssuing(t *testing.T) {
	t.Helper()
	s.issues = s.start(t, env.CertManagerController)
}

func (s *installation) startInjecting(t *testing.T, args ...string) {
	t.Helper()
	s.injects = s.start(t, env.CertManagerCAInjector, args...)
}

func (s *installation) start(t *testing.T, program env.CertManagerComponent, args ...string) *env.CertManagerProcess {
	t.Helper()

	process, err := s.hub.StartCertManager(t.Context(), s.built, program, args...)
	if err != nil {
		t.Fatal(err)
	}

	return process
}

func stopProcess(t *testing.T, process *env.CertManagerProcess) {
	t.Helper()

	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
}

// preparePods reads the Pods that Helm is about to install, for their ports.
func (s *installation) preparePods(t *testing.T) {
	t.Helper()

	for _, object := range render(t, chartDir, release, namespace, "apiserver.yaml", "controller.yaml") {
		pod, err := s.hub.NewPod(object, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}

		if object.GetName() == "omni-apiserver" {
			s.apiserver = pod
		} else {
			s.controller = pod
		}
	}

	s.network = network(s.apiserver.Port(8443))
	s.kubelet = startKubelet(t, s.hub.Client(), s.apiserver, s.controller)
}

// run starts a Pod as soon as its volumes are there.
func (s *installation) run(t *testing.T, pod *env.Pod) *env.Program {
	t.Helper()
	s.until(t, "the volumes of "+pod.Workload, func(context.Context) error { return s.kubelet.mounted(pod) })

	kubeconfig, err := s.hub.KubeconfigFor("system:serviceaccount:"+namespace+":"+pod.ServiceAccount(),
		"system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		t.Fatal(err)
	}

	program, err := pod.Start(t.Context(), s.binaries, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	return program
}

func (s *installation) until(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()

	if err := env.Eventually(t.Context(), eventuallyTimeout, what, func(ctx context.Context) error {
		for _, process := range []*env.CertManagerProcess{s.issues, s.injects} {
			if process != nil && process.Crashed() != nil {
				return env.GiveUp(process.Crashed())
			}
		}

		return check(ctx)
	}); err != nil {
		t.Fatal(err)
	}
}

func (s *installation) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()

	stdout, _, err := s.hub.KubectlInput(t.Context(), strings.NewReader(stdin), args...)
	if err != nil {
		t.Fatal(err)
	}

	return stdout
}

// available returns nil when kube-apiserver says so.
func (s *installation) available(ctx context.Context) error {
	service, err := s.trusts.ApiregistrationV1().APIServices().Get(ctx, registration, metav1.GetOptions{})
	if err != nil {
		return err
	}

	for _, condition := range service.Status.Conditions {
		if condition.Type == apiregistrationv1.Available {
			if condition.Status == apiregistrationv1.ConditionTrue {
				return nil
			}

			return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		}
	}

	return errors.New("no condition yet")
}

// settled waits until a request of each kind and a new connection work again, and the controller does its work; it returns
// how long the controller took.
func (s *installation) settled(t *testing.T) time.Duration {
	t.Helper()
	s.until(t, "the API to be Available", s.available)

	begin := time.Now()
	stamp := begin.Format(time.RFC3339Nano)

	s.until(t, "a request to the controller", func(ctx context.Context) error {
		_, _, err := s.hub.Kubectl(ctx, "annotate", "omniconnection", connection, "-n", namespace, "--overwrite", "omni.texashpc.com/reconcile-requested-at="+stamp)

		return err
	})

	s.until(t, "the controller to work", func(ctx context.Context) error {
		got, err := s.ours.OmniV1alpha1().OmniConnections(namespace).Get(ctx, connection, metav1.GetOptions{})
		if err == nil && got.Status.LastHandledReconcileAt != stamp {
			err = fmt.Errorf("it last did at %q", got.Status.LastHandledReconcileAt)
		}

		return err
	})

	return time.Since(begin)
}

// logged waits until a program has said this after it had said so much.
func (s *installation) logged(t *testing.T, path, text string, after int64) {
	t.Helper()
	s.until(t, "the log to say "+text, func(context.Context) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		if !bytes.Contains(content[min(after, int64(len(content))):], []byte(text)) {
			return errors.New("it does not")
		}

		return nil
	})
}

func said(t *testing.T, path string) int64 {
	t.Helper()

	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}

	return info.Size()
}

func (s *installation) printLogs(t *testing.T) {
	for _, name := range []string{"omni-apiserver", "omni-controller", "cert-manager-controller", "cert-manager-cainjector"} {
		content, _ := os.ReadFile(s.hub.LogPath(name)) // it may not have been started
		t.Logf("== %s\n%s", name, content[max(0, len(content)-5000):])
	}

	if logs, err := s.hub.SaveLogs(t.Name()); err == nil {
		t.Logf("logs: %s", logs)
	}
}

// createLoad makes the object that requests are about, once the API is served.
func (s *installation) createLoad(t *testing.T) {
	t.Helper()
	s.until(t, "the first object", func(ctx context.Context) error {
		_, err := s.ours.OmniV1alpha1().OmniConnections(namespace).Create(ctx, loadObject(), metav1.CreateOptions{})

		return err
	})

	s.load = &load{client: s.ours, trusts: s.trusts, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.apiserver.Port(8443)))}
	s.load.start(t.Context())
	t.Cleanup(s.load.stop)
}

// stored is the object that requests are about.
func (s *installation) stored(t *testing.T) *v1alpha1.OmniConnection {
	t.Helper()

	object, err := s.ours.OmniV1alpha1().OmniConnections(namespace).Get(t.Context(), connection, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return object
}
