package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mitchellh/go-wordwrap"
	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/term"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/scheme"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// watchPause is how often --watch looks again.
const watchPause = 2 * time.Second

func (t *tool) statusCommand() *cobra.Command {
	watch := false
	format := genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme).WithDefaultOutput("")

	command := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show how a cluster is and what it waits for; without a name a line for each cluster",
		Example: `  # A line for each cluster of the namespace
  kubectl omni status -n fleet

  # One screen about edge-01, again and again
  kubectl omni status edge-01 -n fleet --watch`,
		GroupID: groupLook,
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			for {
				if watch && t.colour {
					_, _ = io.WriteString(t.Out, "\x1b[H\x1b[2J")
				}

				if err := t.showStatus(command.Context(), args, format); err != nil || !watch {
					return err
				}

				select {
				case <-command.Context().Done():
					return nil
				case <-time.After(watchPause):
				}
			}
		},
	}
	command.Flags().BoolVarP(&watch, "watch", "w", false, "Show it again every two seconds.")
	format.AddFlags(command)

	return command
}

func (t *tool) showStatus(ctx context.Context, args []string, format *genericclioptions.PrintFlags) error {
	client, namespace, err := t.api()
	if err != nil {
		return err
	}

	if asked(format) {
		return t.printClusters(ctx, namespace, args, format)
	}

	clusters := client.OmniV1alpha1().OmniClusters(namespace)

	if len(args) == 0 {
		list, err := clusters.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		if len(list.Items) == 0 {
			_, err = fmt.Fprintf(t.ErrOut, "There are no OmniClusters in namespace %s.\n", namespace)

			return err
		}

		return overview(list.Items, t.now(), t.colour).write(t.Out)
	}

	cluster, err := clusters.Get(ctx, args[0], metav1.GetOptions{})
	if err != nil {
		return err
	}

	return t.writeScreen(cluster)
}

// printClusters prints the named cluster, or all of them, as -o asks for.
func (t *tool) printClusters(ctx context.Context, namespace string, names []string, format *genericclioptions.PrintFlags) error {
	client, err := t.rawClient()
	if err != nil {
		return err
	}

	clusters := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("omniclusters")).Namespace(namespace)

	if len(names) == 0 {
		list, err := clusters.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		return t.print(format, list)
	}

	cluster, err := clusters.Get(ctx, names[0], metav1.GetOptions{})
	if err != nil {
		return err
	}

	return t.print(format, cluster)
}

// overview is a line for each cluster.
func overview(clusters []v1alpha1.OmniCluster, now time.Time, colour bool) *table {
	drawn := &table{colour: colour}
	drawn.add(plain, "CLUSTER", "READY", "REASON", "KUBERNETES", "TALOS", "MACHINES", "WAITS FOR", "AGE")

	for i := range clusters {
		o := &clusters[i]
		ready, reason, stalled := stateOf(o)
		kubernetes, talos, machines := "", "", ""

		if remote := o.Status.Omni; remote != nil {
			kubernetes, talos = remote.KubernetesVersion, remote.TalosVersion
			machines = fmt.Sprintf("%d/%d", remote.Machines.Healthy, remote.Machines.Requested)
		}

		drawn.add(colourOf(ready, stalled), o.Name, string(ready), reason, goesTo(kubernetes, o.Spec.Kubernetes.Version), goesTo(talos, o.Spec.Talos.Version),
			machines, cut(waitsFor(o), waitWidth), age(o.CreationTimestamp.Time, now))
	}

	return drawn
}

// waitWidth is how much of what a cluster waits for fits into its line.
const waitWidth = 60

// goesTo shows a version that is run, and the one that is asked for if that is another.
func goesTo(runs, wanted string) string {
	switch {
	case runs == "":
		return wanted
	case runs == wanted:
		return runs
	default:
		return runs + " -> " + wanted
	}
}

// waitsFor says what a person can do something about, or when something happens by itself.
func waitsFor(o *v1alpha1.OmniCluster) string {
	conditions := o.Status.Conditions

	for _, name := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionHeld, v1alpha1.ConditionSuspended, v1alpha1.ConditionReconciling} {
		if apimeta.IsStatusConditionTrue(conditions, name) {
			return firstOf(name, messageOf(o, name))
		}
	}

	return ""
}

// firstOf is the message of a condition without the command at its end, which has no room; of held changes also without
// their list in front of what they wait for, as all clusters of a rollout have the same.
func firstOf(condition, message string) string {
	if _, what, lists := strings.Cut(message, "): "); lists && condition == v1alpha1.ConditionHeld {
		message = what
	}

	what, _, _ := strings.Cut(message, ": kubectl ")

	return what
}

// messageOf is what a condition says; empty if there is none.
func messageOf(o object, name string) string {
	one := apimeta.FindStatusCondition(o.GetReconcileStatus().Conditions, name)

	switch {
	case one == nil:
		return ""
	case one.Message == "":
		return one.Reason
	default:
		return one.Message
	}
}

// writeScreen shows all about one cluster.
func (t *tool) writeScreen(o *v1alpha1.OmniCluster) error {
	ready, reason, stalled := stateOf(o)
	facts := &table{colour: t.colour}
	facts.add(colourOf(ready, stalled), "Cluster", fmt.Sprintf("%s in namespace %s, %s in Omni", o.Name, o.Namespace, o.EffectiveClusterName()))
	facts.add(plain, "Ready", fmt.Sprintf("%s %s", ready, reason))

	if remote := o.Status.Omni; remote != nil {
		facts.add(plain, "Kubernetes", goesTo(remote.KubernetesVersion, o.Spec.Kubernetes.Version)+upgradeOf(remote.Upgrades.Kubernetes))
		facts.add(plain, "Talos", goesTo(remote.TalosVersion, o.Spec.Talos.Version)+upgradeOf(remote.Upgrades.Talos))
		facts.add(plain, "Machines", fmt.Sprintf("%d healthy, %d connected, %d asked for", remote.Machines.Healthy, remote.Machines.Connected, remote.Machines.Requested))

		for _, set := range remote.MachineSets {
			facts.add(plain, "  "+set.Name, fmt.Sprintf("%s, %d of %d healthy", set.Phase, set.Machines.Healthy, set.Machines.Requested))
		}
	}

	if plan := o.Status.Plan; plan != nil && plan.Creates+plan.Updates+plan.Destroys > 0 {
		more := "kubectl omni plan " + o.Name
		if _, err := currentPlan(o); err != nil {
			more = "of an earlier run: there is no current plan"
		}

		facts.add(plain, "Plan", fmt.Sprintf("%d to create, %d to update, %d to destroy; %d held (%s)",
			plan.Creates, plan.Updates, plan.Destroys, plan.Held, more))
	}

	if rollout := o.Status.Rollout; rollout != nil && rollout.Policy != "" {
		facts.add(plain, "Rollout", rollout.Policy+stageOf(rollout)+turnOf(rollout))
	}

	if err := facts.write(t.Out); err != nil {
		return err
	}

	if _, err := fmt.Fprintln(t.Out); err != nil {
		return err
	}

	return conditionsOf(o, t.now(), t.colour).write(t.Out)
}

func upgradeOf(upgrade *v1alpha1.UpgradeStatus) string {
	if upgrade == nil || upgrade.Phase == "Done" {
		return ""
	}

	return fmt.Sprintf(" (%s %s%s)", upgrade.Phase, upgrade.Step, upgrade.Error)
}

// stageOf is empty under two policies.
func stageOf(rollout *v1alpha1.OmniClusterRollout) string {
	if rollout.Stage == "" {
		return ""
	}

	return ", stage " + rollout.Stage
}

func turnOf(rollout *v1alpha1.OmniClusterRollout) string {
	switch {
	case rollout.State == "":
		return ""
	case rollout.NotBefore != nil:
		return fmt.Sprintf(": %s %s, not before %s", rollout.State, rollout.Reason, words.TimeWithZone(rollout.NotBefore.UTC()))
	default:
		return fmt.Sprintf(": %s %s", rollout.State, rollout.Reason)
	}
}

// messageWidth is how wide the lines of a condition's message are.
const messageWidth = 100

func conditionsOf(o object, now time.Time, colour bool) *table {
	drawn := &table{colour: colour}
	drawn.add(plain, "CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE")

	for _, one := range o.GetReconcileStatus().Conditions {
		tone := plain

		switch {
		case one.Type == v1alpha1.ConditionStalled:
			tone = red
		case one.Status == metav1.ConditionFalse:
			tone = yellow
		}

		lines := strings.Split(wordwrap.WrapString(one.Message, messageWidth), "\n")
		drawn.add(tone, one.Type, string(one.Status), one.Reason, age(one.LastTransitionTime.Time, now), lines[0])

		for _, line := range lines[1:] {
			drawn.goOn("", "", "", "", line)
		}
	}

	return drawn
}

// showsColours reports whether a stream is a terminal whose user did not ask for plain text (https://no-color.org).
func showsColours(out io.Writer) bool {
	return term.IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// The colours, as ANSI sequences of the same length, so that columns stay in line.
const (
	plain  = "\x1b[39m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	ends   = "\x1b[0m"
)

// table writes rows in columns; the first row is the heading.
type table struct {
	colour bool
	rows   [][]string
	colors []string
}

func (t *table) add(colour string, cells ...string) {
	t.rows, t.colors = append(t.rows, cells), append(t.colors, colour)
}

// goOn adds a line to the row before it.
func (t *table) goOn(cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cells[i] = " "
		}
	}

	t.add(plain, cells...)
}

func (t *table) write(out io.Writer) error {
	columns := printers.GetNewTabWriter(out)

	for i, row := range t.rows {
		for j, cell := range row {
			row[j] = cmp.Or(escaped(cell), "-")
		}

		if t.colour {
			row[0] = t.colors[i] + row[0]
			row[len(row)-1] += ends
		}

		if _, err := fmt.Fprintln(columns, strings.Join(row, "\t")); err != nil {
			return err
		}
	}

	return columns.Flush()
}

// escaped is the text of a cell, which others may have written, without what a terminal takes for a command and without what
// begins another column or row.
func escaped(cell string) string { return redact.Printable(printers.EscapeTerminal(cell)) }

// colourOf says at a glance how an object is.
func colourOf(ready metav1.ConditionStatus, stalled bool) string {
	switch {
	case stalled:
		return red
	case ready == metav1.ConditionTrue:
		return green
	default:
		return yellow
	}
}

// age is how long ago something was, as kubectl shows it.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}

	return duration.HumanDuration(now.Sub(since))
}

// cut shortens a text to a width.
func cut(text string, width int) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(runes) <= width {
		return string(runes)
	}

	return string(runes[:width-3]) + "..."
}
