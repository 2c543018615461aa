// Package app is the command line of kubectl omni: a file for each command, or for a few that belong together. Commands read and
// write through the API with the user's own rights; none reads the content of a Secret, and only migrate their metadata. What a
// command shows is decided by pure functions, and golden files hold it.
package app

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

// callTimeout bounds one request without --request-timeout.
const callTimeout = 30 * time.Second

// planName is the name of the command whose status tells changes from errors.
const planName = "plan"

// errChanges ends `plan` with a status of 1 when there is something to do.
var errChanges = errors.New("there are changes")

// tool is what the commands share.
type tool struct {
	genericiooptions.IOStreams

	flags  *genericclioptions.ConfigFlags
	client versioned.Interface // made at the first use, as the next three; tests give their own
	raw    dynamic.Interface
	meta   metadata.Interface
	hub    kubernetes.Interface
	now    func() time.Time
	colour bool
}

// Main runs the plugin and returns the status of the process: 0, and 1 for an error. `plan` has the statuses of kubectl diff:
// 1 for changes, and 2 for an error.
func Main(streams genericiooptions.IOStreams, args []string) int {
	ctx, stop := untilSignal()
	defer stop()

	command := NewCommand(streams)
	command.SetArgs(args)

	executed, err := command.ExecuteContextC(ctx)
	if err != nil && !errors.Is(err, errChanges) {
		_, _ = fmt.Fprintf(streams.ErrOut, "error: %s\n", printers.EscapeTerminal(err.Error()))
	}

	return statusOf(executed, err)
}

// untilSignal is done at the first signal to end. The second one ends the process, whatever it waits for.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	return ctx, stop
}

// statusOf is the status of the process after a command has ended.
func statusOf(executed *cobra.Command, err error) int {
	switch {
	case err == nil:
		return 0
	case executed.CommandPath() == executed.Root().CommandPath()+" "+planName && !errors.Is(err, errChanges):
		return 2
	default:
		return 1
	}
}

// NewCommand makes the command kubectl omni.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	t := &tool{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), now: time.Now, colour: showsColours(streams.Out)}

	return t.command()
}

func (t *tool) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-omni",
		Short: "Look at clusters of Sidero Omni, and decide what waits for you",
		Long: `kubectl omni shows what belongs to an OmniCluster, how it is and what it waits for, and does what waits for a person.
Everything it does is ordinary API calls with your own rights. It reads no Secret (but for migrate), and changes nothing that Git owns (but for hold, the
emergency stop). Flags stand behind the name of the command: kubectl omni status -n fleet.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl omni"},
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           version.Get().String(),
		DisableAutoGenTag: true,
	}
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.ErrOut)
	t.flags.AddFlags(root.PersistentFlags())

	root.AddGroup(&cobra.Group{ID: groupLook, Title: "Look:"}, &cobra.Group{ID: groupDecide, Title: "Decide:"}, &cobra.Group{ID: groupMove, Title: "Move:"})
	root.AddCommand(t.treeCommand(), t.statusCommand(), t.planCommand(), t.kubeconfigCommand(), t.versionCommand(), t.supportBundleCommand(),
		t.approveCommand(), t.overrideCommand(), t.promoteCommand(), t.holdCommand(), t.suspendCommand(), t.resumeCommand(), t.reconcileCommand())

	root.AddCommand(t.exportCommand(), t.migrateCommand())

	return root
}

// refuseFlags fails if a flag of kubectl is set that a command does not use: whoever sets it expects something of it. format
// is of the error, for the name of the flag.
func refuseFlags(command *cobra.Command, unused func(name string) bool, format string) (err error) {
	command.InheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if err == nil && flag.Changed && unused(flag.Name) {
			err = fmt.Errorf(format, flag.Name)
		}
	})

	return err
}

// The groups that --help sorts the commands by.
const (
	groupLook   = "look"
	groupDecide = "decide"
	groupMove   = "move"
)

// api is the client for our kinds, and the namespace that the user means.
func (t *tool) api() (client versioned.Interface, namespace string, err error) {
	if namespace, err = t.namespace(); err != nil {
		return nil, "", err
	}

	client, err = clientOf(t, &t.client, func(config *rest.Config) (versioned.Interface, error) { return versioned.NewForConfig(config) })

	return client, namespace, err
}

// namespace is the one that the user means.
func (t *tool) namespace() (string, error) {
	namespace, _, err := t.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("find the namespace: %w", err)
	}

	return namespace, nil
}

// rawClient is the client for our kinds as the server sends them, with fields that this version does not know.
func (t *tool) rawClient() (dynamic.Interface, error) {
	return clientOf(t, &t.raw, func(config *rest.Config) (dynamic.Interface, error) { return dynamic.NewForConfig(config) })
}

// metadataClient is the client for the metadata of our kinds.
func (t *tool) metadataClient() (metadata.Interface, error) {
	return clientOf(t, &t.meta, metadata.NewForConfig)
}

// hubClient is the client for what else the management cluster has.
func (t *tool) hubClient() (kubernetes.Interface, error) {
	return clientOf(t, &t.hub, func(config *rest.Config) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) })
}

// clientOf returns a client, which it makes at the first use.
func clientOf[C comparable](t *tool, made *C, connect func(*rest.Config) (C, error)) (C, error) {
	var none C

	if *made != none {
		return *made, nil
	}

	config, err := t.config()
	if err != nil {
		return none, err
	}

	client, err := connect(config)
	if err != nil {
		return none, fmt.Errorf("make a client: %w", err)
	}

	*made = client

	return client, nil
}

// config is how the management cluster is reached.
func (t *tool) config() (*rest.Config, error) {
	config, err := t.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the management cluster: %w", err)
	}

	config = rest.CopyConfig(config)
	config.UserAgent = version.Get().UserAgent("kubectl-omni")
	config.Timeout = cmp.Or(config.Timeout, callTimeout) // --request-timeout, if it is set
	config.WarningHandler = rest.NewWarningWriter(t.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: t.colour})

	return config, nil
}

// completeClusters offers the names of the OmniClusters of the namespace to the shell. It reads their metadata only: each
// press of the key asks anew.
func (t *tool) completeClusters(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	namespace, err := t.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	client, err := t.metadataClient()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	clusters, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("omniclusters")).Namespace(namespace).List(command.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	var names []string

	for i := range clusters.Items {
		if name := clusters.Items[i].Name; strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}

var errNotConfirmed = errors.New("nothing was done: it was not confirmed")

// these counts changes that were shown.
func these(number int) string {
	if number == 1 {
		return "this change"
	}

	return fmt.Sprintf("these %d changes", number)
}

// confirm asks a question; anything but yes is no, and so is an interruption.
func (t *tool) confirm(ctx context.Context, question string) error {
	if _, err := fmt.Fprintf(t.ErrOut, "%s [y/N]: ", question); err != nil {
		return err
	}

	answer, err := untilDone(ctx, func() (string, error) { return bufio.NewReader(t.In).ReadString('\n') })
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil && answer == "" || answer != "y" && answer != "yes" {
		return errNotConfirmed
	}

	return nil
}

// untilDone waits for a call that knows no context until the context is done. A call that has not ended then is left to itself: the
// process is about to end.
func untilDone[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}

	ended := make(chan result, 1)

	go func() {
		value, err := call()
		ended <- result{value, err}
	}()

	select {
	case got := <-ended:
		return got.value, got.err
	case <-ctx.Done():
		var none T

		return none, context.Cause(ctx)
	}
}

// asked reports whether there is -o.
func asked(format *genericclioptions.PrintFlags) bool {
	return format.OutputFormat != nil && *format.OutputFormat != ""
}

// print writes an object as -o asks for.
func (t *tool) print(format *genericclioptions.PrintFlags, object runtime.Object) error {
	printer, err := format.ToPrinter()
	if err != nil {
		return err
	}

	return printer.PrintObj(object, t.Out)
}

// addFormat adds -o to a command whose result is no object of the API.
func addFormat(flags *pflag.FlagSet) *string {
	return flags.StringP("output", "o", "", "Print json or yaml, for programs, instead of what is for people.")
}

// encode writes what is no object of the API, as -o asks for; done is false without -o.
func (t *tool) encode(format string, value any) (done bool, err error) {
	var text []byte

	switch format {
	case "":
		return false, nil
	case "json":
		text, err = json.MarshalIndent(value, "", "    ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		return true, fmt.Errorf("-o %s: it is json or yaml", format)
	}

	if err == nil {
		_, err = t.Out.Write(text)
	}

	return true, err
}
