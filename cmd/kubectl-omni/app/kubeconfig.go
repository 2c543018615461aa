package app

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// clientID is the OIDC client of Omni for programs on the computers of people.
const clientID = "native"

func (t *tool) kubeconfigCommand() *cobra.Command {
	merge := false

	command := &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Print a kubeconfig with which people log in to a cluster",
		Long: `kubeconfig prints the kubeconfig that omnictl makes for people. It holds no credential: at the first request kubectl runs kubelogin
(the plugin oidc-login), which opens a browser, and the access policies of Omni decide who may do what. It needs no right but to get the
OmniCluster and its OmniConnection. It is an error while the OmniCluster says that the cluster of its name in Omni is not
its own, or may not be, and while it does not show its own cluster (status.omni) where the OmniConnection leads now
(status.endpoint of both): you would work in another cluster.`,
		Example: `  kubectl omni kubeconfig edge-01 -n fleet

  # Add a context to your own kubeconfig
  kubectl omni kubeconfig edge-01 -n fleet --merge`,
		GroupID: groupLook,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			config, err := t.kubeconfigFor(command.Context(), args[0])
			if err != nil {
				return err
			}

			if merge {
				return t.mergeKubeconfig(config)
			}

			text, err := clientcmd.Write(*config)
			if err != nil {
				return fmt.Errorf("write the kubeconfig: %w", err)
			}

			_, err = t.Out.Write(text)

			return err
		},
	}
	command.Flags().BoolVar(&merge, "merge", false, "add the context to your kubeconfig instead; its current context stays as it is")

	return command
}

// kubeconfigFor makes the kubeconfig for people of a cluster.
func (t *tool) kubeconfigFor(ctx context.Context, name string) (*clientcmdapi.Config, error) {
	cluster, err := t.cluster(ctx, name)
	if err != nil {
		return nil, err
	}

	if err := checkOwned(cluster); err != nil {
		return nil, err
	}

	client, namespace, err := t.api()
	if err != nil {
		return nil, err
	}

	connection, err := client.OmniV1alpha1().OmniConnections(namespace).Get(ctx, cluster.Spec.ConnectionRef.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}

	if err := checkSeen(cluster, connection); err != nil {
		return nil, err
	}

	access := connection.Status.Access
	if access == nil {
		return nil, fmt.Errorf("OmniConnection %q does not say how people reach its clusters: it has to be Ready once, with this version of omni-controller",
			connection.Name)
	}

	// They become arguments of a program.
	for field, text := range map[string]string{"kubernetesProxyURL": access.KubernetesProxyURL, "oidcIssuerURL": access.OIDCIssuerURL} {
		if parsed, err := url.Parse(text); err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
			return nil, fmt.Errorf("status.access.%s of OmniConnection %q is no http or https URL", field, connection.Name)
		}
	}

	return kubeconfigOf(*access, cluster.EffectiveClusterName()), nil
}

// checkOwned returns an error if the cluster of this name in Omni is not this object's, or may not be: a kubeconfig would lead people
// into another one. A suspended object says so only in Planned, one that is being deleted only in DeletionBlocked.
func checkOwned(cluster *v1alpha1.OmniCluster) error {
	for _, name := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionDeletionBlocked, v1alpha1.ConditionPlanned} {
		condition := apimeta.FindStatusCondition(cluster.Status.Conditions, name)
		if condition == nil {
			continue
		}

		switch condition.Reason {
		case v1alpha1.ReasonEndpointChanged, v1alpha1.ReasonNotOwned, v1alpha1.ReasonOwnershipLost, v1alpha1.ReasonOwnedByOtherHub,
			v1alpha1.ReasonRemoteClusterReplaced:
			return fmt.Errorf("a kubeconfig would lead into a cluster that is not known to be that of OmniCluster %q, which says %s: %s",
				cluster.Name, condition.Reason, condition.Message)
		}
	}

	return nil
}

// checkSeen returns an error unless the object's own cluster was seen where the connection leads now. While Omni cannot be read, as just
// after the connection has got another endpoint, no condition says whose the cluster of this name is there.
func checkSeen(cluster *v1alpha1.OmniCluster, connection *v1alpha1.OmniConnection) error {
	if cluster.Status.Omni == nil { // it is kept while Omni cannot be read
		return fmt.Errorf("the cluster of OmniCluster %q is not known to be in Omni: a kubeconfig would lead to whichever has its name there",
			cluster.Name)
	}

	if seen, leads := cluster.Status.Endpoint, connection.Status.Endpoint; seen == "" || !omni.SameOrigin(seen, leads) {
		return fmt.Errorf("the cluster of OmniCluster %q was last seen at %s, and OmniConnection %q leads to %s: it is not known to be there",
			cluster.Name, cmp.Or(seen, "no endpoint"), connection.Name, cmp.Or(leads, "no endpoint"))
	}

	return nil
}

// kubeconfigOf is what omnictl writes, but for the user's name: it does not have the person's address in it, as only Omni
// knows that.
func kubeconfigOf(access v1alpha1.OmniAccess, cluster string) *clientcmdapi.Config {
	config, name := clientcmdapi.NewConfig(), access.Account+"-"+cluster

	config.CurrentContext = name
	config.Clusters[name] = &clientcmdapi.Cluster{Server: access.KubernetesProxyURL}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: metav1.NamespaceDefault}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1",
		Command:    "kubectl",
		Args: []string{
			"oidc-login", "get-token", "--oidc-issuer-url=" + access.OIDCIssuerURL, "--oidc-client-id=" + clientID, "--oidc-extra-scope=cluster:" + cluster,
		},
		InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}}

	return config
}

// mergeKubeconfig adds a context with its cluster and user to the user's own kubeconfig. What is there stays as it is: if it is
// something else of one of the names, nothing is written.
func (t *tool) mergeKubeconfig(added *clientcmdapi.Config) error {
	files := t.flags.ToRawKubeConfigLoader().ConfigAccess()

	config, err := files.GetStartingConfig()
	if err != nil {
		return fmt.Errorf("read your kubeconfig: %w", err)
	}

	name := added.CurrentContext
	cluster, context := config.Clusters[name], config.Contexts[name]

	user := name
	if context != nil { // that of omnictl has a user whose name ends with the person's address
		user = context.AuthInfo
	}

	login := config.AuthInfos[user]
	if cluster != nil && cluster.Server != added.Clusters[name].Server || login != nil && !isSameLogin(login, added.AuthInfos[name]) ||
		context != nil && (context.Cluster != name || login == nil) {
		return fmt.Errorf("your kubeconfig has something else of the name %q: rename that (kubectl config rename-context), or print this one into a file", name)
	}

	if cluster == nil {
		config.Clusters[name] = added.Clusters[name]
	}

	if login == nil {
		config.AuthInfos[name] = added.AuthInfos[name]
	}

	if context == nil {
		config.Contexts[name] = added.Contexts[name]
	}

	if err := clientcmd.ModifyConfig(files, *config, true); err != nil {
		return fmt.Errorf("write your kubeconfig: %w", err)
	}

	return t.told("context %q is in your kubeconfig: kubectl --context %s get nodes", name, name)
}

// isSameLogin reports whether a user logs in as another one does; it may have more arguments, such as a grant type.
func isSameLogin(user, wanted *clientcmdapi.AuthInfo) bool {
	return user.Exec != nil && user.Token == "" && len(user.ClientKeyData) == 0 && user.Exec.Command == wanted.Exec.Command &&
		!slices.ContainsFunc(wanted.Exec.Args, func(arg string) bool { return !slices.Contains(user.Exec.Args, arg) })
}
