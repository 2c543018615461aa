// Command certmanager runs one of cert-manager's programs out of its own module, with what the chart of the operator
// needs of it: the controllers of Issuers (SelfSigned and CA), Certificates and CertificateRequests, or cainjector for
// APIServices. What is left out: the webhook, ACME, Vault, Venafi, gateways, metrics and leader election.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cert-manager/cert-manager/pkg/util/feature"
)

// parts are the programs by their names.
var parts = map[string]func(ctx context.Context, kubeconfig string) error{
	"controller": runController,
	"cainjector": runCAInjector,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "certmanager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// A set of its own: controller-runtime has a flag --kubeconfig in the common one.
	flags := flag.NewFlagSet("certmanager", flag.ContinueOnError)
	part := flags.String("part", "", "controller or cainjector")
	kubeconfig := flags.String("kubeconfig", "", "how to reach the cluster")
	gates := flags.String("feature-gates", "", "features of cert-manager to turn on or off, such as CAInjectorMerging=false")

	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}

	start := parts[*part]
	if start == nil || *kubeconfig == "" {
		return errors.New("--part (controller or cainjector) and --kubeconfig are required")
	}

	if err := feature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}

	logger := klog.NewKlogr()
	ctrl.SetLogger(logger)

	if err := start(klog.NewContext(ctx, logger), *kubeconfig); err != nil {
		return fmt.Errorf("%s: %w", *part, err)
	}

	return nil
}
