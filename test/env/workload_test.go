package env

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/siderolabs/omni/client/pkg/client/management"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestWorkloadPool checks the way of a kubeconfig from the simulated Omni to a real workload
// cluster, where RBAC sees the user and groups of its token, and that a cluster that comes back
// is empty.
func TestWorkloadPool(t *testing.T) {
	pool := &WorkloadPool{Options: Options{Progress: t.Output()}}

	defer func() {
		if err := pool.Stop(); err != nil {
			t.Error(err)
		}
	}()

	var first *Hub

	t.Run("use", func(t *testing.T) {
		first = pool.Borrow(t)
		useWorkload(t, first)
	})
	t.Run("used again", func(t *testing.T) {
		second := pool.Borrow(t)
		if second != first {
			t.Error("another cluster was started although one was free")
		}

		wantEmpty(t, second)

		if len(pool.free) > 0 {
			t.Error("a cluster that is lent could be lent twice")
		}
	})
	t.Run("none is free", func(t *testing.T) {
		pool.Max = 1
		third := make(chan *Hub)

		t.Run("used", func(t *testing.T) {
			used := pool.Borrow(t)

			go func() {
				cluster, _ := pool.lend(context.Background())
				third <- cluster
			}()

			select {
			case <-third:
				t.Error("more are lent than may be")
			case <-time.After(100 * time.Millisecond):
			}

			if used != first {
				t.Error("another cluster was started although one was free")
			}
		})

		if cluster := await.Receive(t, "the cluster that came back", third); cluster != first {
			t.Error("another cluster was started although one came back")
		}
	})
}

func useWorkload(t *testing.T, cluster *Hub) {
	ctx := t.Context()
	config := exportedConfig(t, cluster, "robot", "deployers")

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "robot"`) {
		t.Fatalf("without a binding: %v, want forbidden to robot", err)
	}

	bind(t, cluster, "deployers", "cluster-admin")

	if err := Eventually(ctx, time.Minute, "the binding to count", func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}, metav1.CreateOptions{})

		return err
	}); err != nil {
		t.Fatal(err)
	}

	watch, err := client.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=news"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	news := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "news"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, news, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if event := await.Receive(t, "an event through the proxy", watch.ResultChan()); event.Type != "ADDED" {
		t.Errorf("event %v", event)
	}

	config.Impersonate = rest.ImpersonationConfig{UserName: "somebody-else"}

	impersonating, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	// The proxy drops the headers: the answer is for robot.
	if _, err := impersonating.CoreV1().Namespaces().Get(ctx, "apps", metav1.GetOptions{}); err != nil {
		t.Errorf("with impersonation: %v", err)
	}
}

// exportedConfig asks a simulated Omni for a kubeconfig of the workload cluster.
func exportedConfig(t *testing.T, cluster *Hub, user string, groups ...string) *rest.Config {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{Phase: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	key, err := sim.CreateServiceAccount("operator", omnisim.RoleOperator, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	cert, private := cluster.FrontProxyClient()
	if err := sim.AttachWorkload("production", omnisim.Workload{URL: cluster.URL(), CA: cluster.CA(), ProxyCert: cert, ProxyKey: private}); err != nil {
		t.Fatal(err)
	}

	if err := omnisim.CreateForeignCluster(t.Context(), sim.State(), "production", "1.35.1", "1.13.3"); err != nil {
		t.Fatal(err)
	}

	omni, err := omnisim.Connect(sim.Endpoint(), key, sim.CAPEM())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = omni.Close() })

	var raw []byte

	await.Until(t, "a kubeconfig", func() bool {
		raw, err = omni.Management().WithCluster("production").Kubeconfig(t.Context(), management.WithServiceAccount(time.Hour, user, groups...))

		return err == nil
	})

	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}

	config.CAData = sim.CAPEM()

	return config
}

func bind(t *testing.T, cluster *Hub, group, role string) {
	t.Helper()

	_, err := cluster.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func wantEmpty(t *testing.T, cluster *Hub) {
	t.Helper()

	if _, err := cluster.Client().CoreV1().Namespaces().Get(t.Context(), "apps", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace of the test before: %v", err)
	}

	if _, err := cluster.Client().CoreV1().ConfigMaps("default").Get(t.Context(), "news", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("ConfigMap of the test before: %v", err)
	}

	if _, err := cluster.Client().RbacV1().ClusterRoleBindings().Get(t.Context(), "deployers", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("ClusterRoleBinding of the test before: %v", err)
	}

	// Kubernetes' own part is still there.
	if _, err := cluster.Client().RbacV1().ClusterRoles().Get(t.Context(), "cluster-admin", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	if _, err := cluster.Client().CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
