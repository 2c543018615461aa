package env

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// controlPlaneTimeout bounds the start of each control plane process. The slowest,
// kube-apiserver, takes 2.5 seconds on two idle cores.
const controlPlaneTimeout = 5 * time.Minute

// startEtcd starts the hub's etcd. Without fsync, unless durable: its data is thrown away with
// the hub, and nothing tests the hub's own durability.
func (h *Hub) startEtcd(durable bool) error {
	client, err := h.reservePort()
	if err != nil {
		return err
	}

	peer, err := h.reservePort()
	if err != nil {
		return err
	}

	h.etcdURL = "https://" + client.address()
	peerURL := "http://" + peer.address()

	_, err = h.start(processSpec{
		name:    "etcd",
		binary:  h.tools.Etcd,
		foreign: true,
		args: []string{
			"--name=hub",
			"--data-dir=" + filepath.Join(h.Dir, "etcd"),
			"--unsafe-no-fsync=" + strconv.FormatBool(!durable),
			"--log-level=warn",
			"--listen-client-urls=" + h.etcdURL,
			"--advertise-client-urls=" + h.etcdURL,
			"--listen-peer-urls=" + peerURL,
			"--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=hub=" + peerURL,
			"--cert-file=" + h.creds.file("etcd.crt"),
			"--key-file=" + h.creds.file("etcd.key"),
			"--trusted-ca-file=" + h.creds.file("ca.crt"),
			"--client-cert-auth",
		},
	})

	return err
}

// startKubeAPIServer starts kube-apiserver and waits until it is ready.
func (h *Hub) startKubeAPIServer(ctx context.Context, extraArgs []string) error {
	port, err := h.reservePort()
	if err != nil {
		return err
	}

	h.server = "https://" + port.address()

	if err := writeKubeconfig(h.KubeconfigPath, h.server, h.creds.cluster.certPEM, h.creds.admin); err != nil {
		return err
	}

	if err := h.connect(); err != nil {
		return err
	}

	server, err := h.start(processSpec{
		name:    "kube-apiserver",
		binary:  h.tools.KubeAPIServer,
		foreign: true,
		args:    append(h.kubeAPIServerArgs(port.number), extraArgs...),
	})
	if err != nil {
		return err
	}

	return server.eventuallyAlive(ctx, controlPlaneTimeout, "kube-apiserver to be ready", func(ctx context.Context) error {
		answer, err := h.client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("%w: %s", err, answer)
		}

		return nil
	})
}

func (h *Hub) kubeAPIServerArgs(port int) []string {
	return append(h.EtcdArgs(),
		"--bind-address="+loopback,
		"--secure-port="+strconv.Itoa(port),
		// Nothing needs the address of the "kubernetes" Service, and publishing a loopback
		// address there is refused. Naming it keeps the server from looking for a default route.
		"--advertise-address="+loopback,
		"--endpoint-reconciler-type=none",

		"--tls-cert-file="+h.creds.file("kube-apiserver.crt"),
		"--tls-private-key-file="+h.creds.file("kube-apiserver.key"),
		"--client-ca-file="+h.creds.file("ca.crt"),
		"--authorization-mode=RBAC",

		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file="+h.creds.file("service-account.key"),
		"--service-account-key-file="+h.creds.file("service-account.pub"),

		"--requestheader-client-ca-file="+h.creds.file("front-proxy-ca.crt"),
		"--requestheader-allowed-names="+frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+h.creds.file("front-proxy-client.crt"),
		"--proxy-client-key-file="+h.creds.file("front-proxy-client.key"),
	)
}

// EtcdArgs returns the flags with which an API server uses the hub's etcd. Two servers share it
// only with different --etcd-prefix flags.
func (h *Hub) EtcdArgs() []string {
	return []string{
		"--etcd-servers=" + h.etcdURL,
		"--etcd-cafile=" + h.creds.file("ca.crt"),
		"--etcd-certfile=" + h.creds.file("etcd-client.crt"),
		"--etcd-keyfile=" + h.creds.file("etcd-client.key"),
	}
}

// usedControllers are those that something here waits for. Each of the others has watches, and a token, of its own.
var usedControllers = []string{
	"clusterrole-aggregation-controller",
	"deployment-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"persistentvolumeclaim-protection-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"ttl-after-finished-controller",
	"validatingadmissionpolicy-status-controller",
}

// StartControllerManager starts kube-controller-manager and waits until its controllers run.
// Call it only on a hub that was started with Options.WithoutControllerManager, after the
// aggregated API is registered: its garbage collector and quota controller look for new
// kinds only about every 30 seconds.
func (h *Hub) StartControllerManager(ctx context.Context) error {
	if h.process("kube-controller-manager") != nil {
		return errors.New("kube-controller-manager was started before")
	}

	controllers := "*"
	if !h.asDeployed {
		controllers = strings.Join(usedControllers, ",")
	}

	manager, err := h.start(processSpec{
		name:    "kube-controller-manager",
		binary:  h.tools.KubeControllerManager,
		foreign: true,
		args: []string{
			"--kubeconfig=" + h.KubeconfigPath,
			"--controllers=" + controllers,
			"--secure-port=0", // nobody asks it for metrics
			"--leader-elect=false",
			// It makes a token for each of its controllers one by one: at the default rate that
			// alone takes four seconds.
			"--kube-api-qps=1000",
			"--kube-api-burst=1000",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + h.creds.file("service-account.key"),
			"--root-ca-file=" + h.creds.file("ca.crt"),
		},
	})
	if err != nil {
		return err
	}

	// The service account of the namespace is made by a controller: when it is there, they run.
	return manager.eventuallyAlive(ctx, controlPlaneTimeout, "kube-controller-manager to work", func(ctx context.Context) error {
		_, err := h.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})

		return err
	})
}

// tcpOpen reports whether something listens on the address, as an error if not.
func tcpOpen(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}

	return conn.Close()
}
