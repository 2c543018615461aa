package contract

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/pkg/client"
	"github.com/siderolabs/omni/client/pkg/client/management"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
)

// kubeconfig is the part of a kubeconfig that the server sets.
type kubeconfig struct {
	Clusters []struct {
		Cluster map[string]any `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User map[string]any `json:"user"`
	} `json:"users"`
}

// kubeconfigs tests the content of a service-account kubeconfig and who may request one.
func (s *suite) kubeconfigs(t *testing.T) {
	cluster := newCluster(unique("kubeconfig"))
	s.create(t, cluster)
	s.settle(t, cluster)

	_, key := s.account(t, "Operator")
	operator := s.connect(t, key)
	name := cluster.Metadata().ID()

	ask := func(c *client.Client, cluster string, ttl time.Duration, user string) ([]byte, error) {
		return c.Management().WithCluster(cluster).Kubeconfig(deadline(t), management.WithServiceAccount(ttl, user, "system:masters"))
	}

	t.Run("contents", func(t *testing.T) {
		raw, err := ask(operator, name, time.Hour, "robot")
		if err != nil {
			t.Fatal(err)
		}

		s.checkKubeconfig(t, raw, name)
	})

	t.Run("groups are not asked for", func(t *testing.T) {
		_, err := operator.Management().WithCluster(name).Kubeconfig(deadline(t), management.WithServiceAccount(time.Hour, "robot"))
		if err != nil {
			t.Error(err)
		}
	})

	_, readerKey := s.account(t, "Reader")

	t.Run("for people", func(t *testing.T) {
		for _, cluster := range []string{name, unique("missing")} {
			raw, err := s.connect(t, readerKey).Management().WithCluster(cluster).Kubeconfig(deadline(t))
			if err != nil {
				t.Fatal(err)
			}

			checkForPeople(t, raw, cluster)
		}
	})

	for _, test := range []struct {
		name    string
		client  *client.Client
		cluster string
		ttl     time.Duration
		user    string
		code    string
		words   []string
	}{
		{"reader", s.connect(t, readerKey), name, time.Hour, "robot", "PermissionDenied", nil},
		{"no user", operator, name, time.Hour, "", "InvalidArgument", []string{"user"}},
		{"no ttl", operator, name, 0, "robot", "InvalidArgument", []string{"ttl"}},
		{"negative ttl", operator, name, -time.Hour, "robot", "InvalidArgument", []string{"ttl"}},
		{"ten years", operator, name, 10 * 365 * 24 * time.Hour, "robot", "", nil},
		{"more than ten years", operator, name, 10*365*24*time.Hour + time.Second, "robot", "InvalidArgument", []string{"ttl", "too long"}},
		{"unknown cluster", operator, unique("missing"), time.Hour, "robot", "Unknown", []string{"failed to get cluster UUID"}},
		{"no cluster", operator, "", time.Hour, "robot", "InvalidArgument", []string{"cluster"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ask(test.client, test.cluster, test.ttl, test.user)

			switch {
			case test.code != "":
				wantError(t, err, test.code, test.words...)
			case err != nil:
				t.Error(err)
			}
		})
	}

	s.remove(t, cluster.Metadata())
}

// checkForPeople checks that the kubeconfig has a program to run, and no credential. The cluster need not exist.
func checkForPeople(t *testing.T, raw []byte, cluster string) {
	t.Helper()

	config, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}

	context := config.Contexts[config.CurrentContext]
	if context == nil || !strings.HasSuffix(config.CurrentContext, "-"+cluster) {
		t.Fatalf("the current context is %q, want one that ends with the cluster's name", config.CurrentContext)
	}

	if server := config.Clusters[context.Cluster]; server == nil || server.Server == "" || len(server.CertificateAuthorityData) > 0 {
		t.Errorf("cluster %+v, want a server and no CA", server)
	}

	user := config.AuthInfos[context.AuthInfo]
	if user == nil || user.Exec == nil || user.Token != "" || len(user.ClientKeyData) > 0 {
		t.Fatal("the user must have a program to run and no credential")
	}

	args := slices.Clone(user.Exec.Args)
	issuer := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--oidc-issuer-url=http") })

	if issuer < 0 {
		t.Fatalf("no issuer in %q", args)
	}

	want := []string{"oidc-login", "get-token", args[issuer], "--oidc-client-id=native", "--oidc-extra-scope=cluster:" + cluster}
	if diff := cmp.Diff(want, args); diff != "" || user.Exec.Command != "kubectl" {
		t.Errorf("command %s, arguments (-want +got):\n%s", user.Exec.Command, diff)
	}
}

func (s *suite) checkKubeconfig(t *testing.T, raw []byte, cluster string) {
	t.Helper()

	var config kubeconfig
	if err := yaml.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}

	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		t.Fatalf("%d clusters and %d users, want one of each", len(config.Clusters), len(config.Users))
	}

	// One URL, no CA; one token, no exec.
	if _, ok := config.Clusters[0].Cluster["server"].(string); !ok || len(config.Clusters[0].Cluster) != 1 {
		t.Errorf("cluster %v, want a server and nothing else", config.Clusters[0].Cluster)
	}

	token, ok := config.Users[0].User["token"].(string)
	if !ok || len(config.Users[0].User) != 1 {
		t.Fatal("the user must have a token and nothing else")
	}

	claims := jwt.MapClaims{}

	parsed, _, err := jwt.NewParser().ParseUnverified(token, claims)
	if err != nil {
		t.Fatal("the token cannot be parsed")
	}

	if parsed.Method.Alg() != "RS256" || parsed.Header["kid"] == "" {
		t.Errorf("header %v, want RS256 and a key ID", parsed.Header)
	}

	uuid, err := safe.StateGetByID[*omni.ClusterUUID](deadline(t), s.admin.Omni().State(), cluster)
	if err != nil {
		t.Fatal(err)
	}

	expires, _ := claims["exp"].(float64)
	if left := time.Until(time.Unix(int64(expires), 0)); left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("the token expires in %s, want an hour", left)
	}

	delete(claims, "exp")
	delete(claims, "iat")
	delete(claims, "iss")

	want := jwt.MapClaims{
		"sub": "robot", "groups": []any{"system:masters"}, "cluster": cluster, "cluster_uuid": uuid.TypedSpec().Value.GetUuid(),
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}
