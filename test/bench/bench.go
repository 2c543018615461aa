package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/test/env"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

const (
	// fleetNamespace is the one that the controller serves; the objects of part (a) are elsewhere.
	fleetNamespace = "fleet"
	// keyLifetime outlasts a run, and the warning before a key expires.
	keyLifetime = 30 * 24 * time.Hour
	// auditMegabytes is more than a run writes: a log that is rotated cannot be counted.
	auditMegabytes = "8192"
	// stepTimeout bounds one wait for the operator.
	stepTimeout = 15 * time.Minute
	// clusterTimeout is how much longer a wait for new clusters may take for each of them.
	clusterTimeout = time.Second
)

// bench is the running stack and what parts share.
type bench struct {
	settings settings
	results  *results
	started  time.Time

	stack    *env.Stack
	omnis    omnis
	dir      string
	ownsDir  bool
	pprof    string // host:port of the controller's profiles
	admin    rest.Interface
	clients  *versioned.Clientset
	clusters *tracker
	size     int // clusters of the fleet
}

func startBench(ctx context.Context, s settings, r *results) (*bench, error) {
	b := &bench{settings: s, results: r, started: time.Now(), dir: s.dir}
	if err := b.prepare(); err != nil {
		return nil, err
	}

	b.say("Building what is not built yet, and starting everything")

	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}

	return b, nil
}

// prepare makes the directory with the audit policy.
func (b *bench) prepare() (err error) {
	if b.dir == "" {
		b.ownsDir = true
		b.dir, err = os.MkdirTemp("", "bench-")
	} else {
		err = os.MkdirAll(b.dir, 0o700)
	}

	if err != nil {
		return fmt.Errorf("make the directory of the stack: %w", err)
	}

	if err := os.WriteFile(b.file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}

	b.pprof, err = freeAddress()

	return err
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

// auditArgs turn the audit log on, in the way that both API servers know.
func (b *bench) auditArgs(log string) []string {
	return []string{
		"--audit-policy-file=" + b.file("audit-policy.yaml"),
		"--audit-log-path=" + b.file(log),
		"--audit-log-maxsize=" + auditMegabytes,
	}
}

const (
	hubAuditLog = "kube-apiserver-audit.log"
	ourAuditLog = "omni-apiserver-audit.log"
)

func (b *bench) start(ctx context.Context) (err error) {
	if b.omnis, err = startOmnis(b.settings.Connections, b.settings.Spare); err != nil {
		return err
	}

	if b.stack, err = env.StartStack(ctx, env.StackOptions{
		Hub: env.Options{
			Dir: b.dir, Progress: os.Stderr, DurableEtcd: b.settings.HubFsync, AsDeployed: true,
			KubeAPIServerArgs: b.auditArgs(hubAuditLog),
		},
		OmniAPIServer: env.OmniAPIServerOptions{Args: append(b.auditArgs(ourAuditLog), strings.Fields(b.settings.APIServerArgs)...)},
		Controller: env.ControllerOptions{
			Namespace: fleetNamespace, DestroySettleTime: time.Second, Args: b.controllerArgs(),
		},
	}); err != nil {
		return err
	}

	client, err := kubernetes.NewForConfig(b.stack.RESTConfig())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}

	b.admin = client.Discovery().RESTClient()

	if b.clients, err = versioned.NewForConfig(b.stack.RESTConfig()); err != nil {
		return fmt.Errorf("make client: %w", err)
	}

	if b.clusters, err = newTracker(ctx, b.clients, fleetNamespace); err != nil {
		return err
	}

	return b.connect(ctx)
}

func (b *bench) controllerArgs() []string {
	args := []string{"--pprof-bind-address=" + b.pprof, "--rollout-ready-time=1s"}
	if qps := b.settings.OmniQPS; qps > 0 {
		args = append(args, fmt.Sprintf("--omni-qps=%d", qps), fmt.Sprintf("--omni-burst=%d", 2*qps))
	}

	return append(args, strings.Fields(b.settings.ControllerArgs)...)
}

// connect makes the connections to the simulated Omnis and waits until they are Ready.
func (b *bench) connect(ctx context.Context) error {
	for i, omni := range b.omnis {
		key, err := omni.CreateServiceAccount("operator", omnisim.RoleOperator, keyLifetime)
		if err != nil {
			return err
		}

		if err := b.createConnection(ctx, connectionName(i), omni, key); err != nil {
			return err
		}
	}

	_, _, err := b.stack.Kubectl(ctx, "wait", "-n", fleetNamespace, "--for=condition=Ready", "--timeout=1m", "oconn", "--all")

	return err
}

// createConnection makes a connection and its Secret.
func (b *bench) createConnection(ctx context.Context, name string, omni *omnisim.Server, key string) error {
	secret, connection := connectionObjects(name, omni.Endpoint(), key, omni.CAPEM())

	if err := b.admin.Post().AbsPath("/api/v1/namespaces", fleetNamespace, "secrets").Body(encode(secret)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create the Secret: %w", err)
	}

	if err := b.admin.Post().AbsPath(ourPath(fleetNamespace, "omniconnections")).Body(encode(connection)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create the connection: %w", err)
	}

	return nil
}

// ourPath is the path of a resource of our API.
func ourPath(namespace, resource string) string {
	return resourcePath(ourGroup, namespace, resource)
}

func resourcePath(group, namespace, resource string) string {
	return "/apis/" + group + "/" + apiVersion + "/namespaces/" + namespace + "/" + resource
}

// close stops everything. Without a directory of the user's choice nothing is left.
func (b *bench) close() error {
	var err error

	if b.clusters != nil {
		b.clusters.stop()
	}

	if b.stack != nil {
		err = b.stack.Stop()
	}

	b.omnis.close()

	if b.ownsDir {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}

	return err
}

// say tells the person who waits how far the run is. Standard output is for the report.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%6s] %s\n", time.Since(b.started).Round(time.Second), fmt.Sprintf(format, args...))
}

// freeAddress returns a loopback address that nobody listens on now.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}

	return listener.Addr().String(), listener.Close()
}
