package app

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/controllers"
)

func parse(t *testing.T, args ...string) *Options {
	t.Helper()

	options := NewOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	options.AddFlags(flags)

	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}

	return options
}

func TestDefaults(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "mine")

	options := parse(t)
	if options.Namespace != "mine" || !options.LeaderElect || options.DestroySettleTime != 10*time.Second || options.JoinSettleTime != 2*time.Second || options.AllNamespaces {
		t.Errorf("%+v", options)
	}

	if options.leaseNamespace() != "mine" {
		t.Error(options.leaseNamespace())
	}

	if err := options.Validate(); err != nil {
		t.Error(err)
	}
}

func TestProfilesAreOffByDefault(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "mine")

	for want, args := range map[string][]string{"": nil, "127.0.0.1:6060": {"--pprof-bind-address=127.0.0.1:6060"}} {
		if got := parse(t, args...).PprofBindAddress; got != want {
			t.Errorf("%v: %q", args, got)
		}
	}
}

func TestFlags(t *testing.T) {
	options := parse(t, "--namespace=a", "--leader-election-namespace=b", "--destroy-settle-time=3s", "--join-settle-time=0s", "--management-cluster-name=hub",
		"--omnicluster-concurrency=3", "--omnimachine-concurrency=7", "--metrics-bind-address=0", "--kubeconfig=/k",
		"--omni-qps=2.5", "--omni-burst=7", "--omni-max-resources=9", "--omni-max-memory=10000000", "--omni-max-total-memory=30000000", "--allowed-networks=127.0.0.0/8,10.1.2.3/32", "--denied-networks=10.0.0.0/8")

	if options.Namespace != "a" || options.leaseNamespace() != "b" || options.DestroySettleTime != 3*time.Second || options.JoinSettleTime != 0 || options.ManagementClusterName != "hub" ||
		options.Concurrency.OmniCluster != 3 || options.Concurrency.OmniMachine != 7 || options.Metrics.BindAddress != "0" || options.Kubeconfig != "/k" ||
		options.Limits != (controllers.Limits{QPS: 2.5, Burst: 7, Resources: 9, Memory: 10000000, TotalMemory: 30000000}) {
		t.Errorf("%+v", options)
	}
}

// Where the lease is decides whether it is kept, and whose lease another one is.
func TestDeletionRights(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "mine")

	for _, test := range []struct {
		args             []string
		namespace, lease string
	}{
		{[]string{"--namespace=a"}, "a", "a"},
		{[]string{"--namespace=a", "--leader-elect=false"}, "a", ""},
		{[]string{"--namespace=a", "--leader-election-namespace=b"}, "a", "b"},
		{[]string{"--all-namespaces", "--leader-election-namespace=b"}, "", "b"},
	} {
		options := parse(t, append(test.args, "--role-binding=r")...)
		want := controllers.DeletionRights{Namespace: test.namespace, RoleBinding: "r", Lease: "omni-controller", LeaseNamespace: test.lease}

		got := options.deletionRights()
		got.Skew = nil // functions are not comparable, and flags do not set it

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.args, diff)
		}
	}
}

func TestGuard(t *testing.T) {
	got, err := parse(t, "--allowed-networks=127.0.0.0/8", "--allowed-networks=10.1.2.3/32", "--denied-networks=10.0.0.0/8,192.168.0.0/16").guard()
	if err != nil || len(got.Allowed) != 2 || got.Allowed[1].String() != "10.1.2.3/32" || len(got.Denied) != 2 || got.Denied[1].String() != "192.168.0.0/16" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestEndpointPolicy(t *testing.T) {
	got, err := parse(t, "--omni-allowed-endpoints=https://a.example.com,https://b.example.com:8443", "--require-allowed-endpoint", "--allow-insecure-omni").endpointPolicy()
	if err != nil || !got.Allowed.Allow("https://b.example.com:8443") || got.Allowed.Allow("https://b.example.com") || !got.Required || !got.AllowInsecure {
		t.Errorf("%v, %v", got, err)
	}

	got, err = parse(t).endpointPolicy()
	if err != nil || len(got.Allowed) != 0 || got.Required || got.AllowInsecure {
		t.Errorf("defaults: %v, %v", got, err)
	}
}

func TestValidate(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")

	for name, test := range map[string]struct {
		args []string
		want []string // parts of the error; none: valid
	}{
		"nothing":                       {nil, []string{"--namespace", "--leader-election-namespace"}},
		"namespace":                     {[]string{"--namespace=a"}, nil},
		"copies":                        {[]string{"--namespace=a", "--omni-max-resources=0", "--omni-max-memory=1", "--omni-max-total-memory=0"}, []string{"--omni-max-resources", "--omni-max-memory: 1", "--omni-max-total-memory: 0"}},
		"no endpoint":                   {[]string{"--namespace=a", "--omni-allowed-endpoints=https://a,b"}, []string{"--omni-allowed-endpoints: entry 2"}},
		"no network":                    {[]string{"--namespace=a", "--allowed-networks=10.1.2.3"}, []string{"--allowed-networks", "10.0.0.0/8"}},
		"no Secret to protect":          {[]string{"--namespace=a", "--protected-secrets=tls"}, []string{"--protected-secrets", "namespace/name"}},
		"no network to deny":            {[]string{"--namespace=a", "--denied-networks=private"}, []string{"--denied-networks", "10.0.0.0/8"}},
		"all namespaces":                {[]string{"--all-namespaces"}, []string{"--leader-election-namespace"}},
		"all namespaces, no election":   {[]string{"--all-namespaces", "--leader-elect=false"}, nil},
		"all namespaces, lease":         {[]string{"--all-namespaces", "--leader-election-namespace=a"}, nil},
		"all namespaces, role binding":  {[]string{"--all-namespaces", "--leader-elect=false", "--role-binding=b"}, nil},
		"hub ID":                        {[]string{"--namespace=a", "--hub-id=berlin-1"}, nil},
		"hub ID that is no label":       {[]string{"--namespace=a", "--hub-id=a b"}, []string{"--hub-id", "label"}},
		"settle time":                   {[]string{"--namespace=a", "--destroy-settle-time=0s"}, []string{"--destroy-settle-time"}},
		"join settle time":              {[]string{"--namespace=a", "--join-settle-time=31s"}, []string{"--join-settle-time: 31s", "30s"}},
		"no join settle time":           {[]string{"--namespace=a", "--join-settle-time=0s"}, nil},
		"verbosity":                     {[]string{"--namespace=a", "-v=5"}, []string{"--v must be 0 to 4"}},
		"verbosity below nothing":       {[]string{"--namespace=a", "--v=-1"}, []string{"--v must be 0 to 4"}},
		"concurrency":                   {[]string{"--namespace=a", "--omniworkers-concurrency=0"}, []string{"--omniworkers-concurrency"}},
		"a certificate and plain text":  {[]string{"--namespace=a", "--metrics-secure=false", "--metrics-cert-path=/x"}, []string{"--metrics-cert-path", "--metrics-secure"}},
		"start timeout":                 {[]string{"--namespace=a", "--start-timeout=0s"}, []string{"--start-timeout"}},
		"several mistakes are all told": {[]string{"--omniconnection-concurrency=-1", "--destroy-settle-time=1ms"}, []string{"omniconnection", "settle", "--namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := parse(t, test.args...).Validate()
			if len(test.want) == 0 && err != nil {
				t.Error(err)
			}

			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	}
}

func TestCacheIsRestrictedToTheNamespace(t *testing.T) {
	one := parse(t, "--namespace=a").cacheOptions()
	if _, found := one.DefaultNamespaces["a"]; !found || len(one.DefaultNamespaces) != 1 {
		t.Errorf("%+v", one.DefaultNamespaces)
	}

	for object, by := range parse(t, "--namespace=a", "--export-namespaces=b,c").cacheOptions().ByObject {
		// Those without namespaces of their own have the default.
		if _, isSecret := object.(*corev1.Secret); isSecret && len(by.Namespaces) != 3 || !isSecret && by.Namespaces != nil {
			t.Errorf("%T: %+v", object, by.Namespaces)
		}
	}

	if all := parse(t, "--namespace=a", "--all-namespaces").cacheOptions(); all.DefaultNamespaces != nil {
		t.Errorf("%+v", all.DefaultNamespaces)
	}
}

func TestVerbosity(t *testing.T) {
	t.Cleanup(func() {
		if err := setVerbosity(0); err != nil {
			t.Error(err)
		}
	})

	if options := parse(t, "--namespace=a", "-v=2"); options.Verbosity != 2 || options.Validate() != nil {
		t.Errorf("verbosity %d: %v", options.Verbosity, options.Validate())
	}

	if err := setVerbosity(2); err != nil {
		t.Fatal(err)
	}

	if !klog.V(2).Enabled() || klog.V(3).Enabled() {
		t.Error("klog has another verbosity")
	}
}

func TestCacheHoldsNoManagedFields(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}

	cached, err := parse(t, "--namespace=a").cacheOptions().DefaultTransform(object)
	if err != nil {
		t.Fatal(err)
	}

	if got := cached.(*corev1.ConfigMap); got.ManagedFields != nil || got.Name != "a" {
		t.Errorf("%+v", got)
	}
}

// TestCacheKeepsLittleOfSecretsAndConfigMaps: of their metadata, in each namespace.
func TestCacheKeepsLittleOfSecretsAndConfigMaps(t *testing.T) {
	for _, flags := range [][]string{{"--namespace=a"}, {"--namespace=a", "--export-namespaces=b"}, {"--namespace=a", "--all-namespaces"}} {
		kinds := 0

		for object, by := range parse(t, flags...).cacheOptions().ByObject {
			kinds++

			metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: "a", Labels: map[string]string{"app": "a"}, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "canary"},
			}}

			if by.Transform == nil {
				t.Fatalf("%v: %T: everything is kept", flags, object)
			}

			if _, err := by.Transform(metadata); err != nil || metadata.Labels != nil || metadata.Annotations != nil || metadata.Name != "a" {
				t.Errorf("%v: %T: %+v, %v", flags, object, metadata, err)
			}

			for namespace, config := range by.Namespaces {
				if config.Transform != nil {
					t.Errorf("%v: %T: namespace %q has another transform", flags, object, namespace)
				}
			}
		}

		if kinds != 2 {
			t.Errorf("%v: %d kinds", flags, kinds)
		}
	}
}
