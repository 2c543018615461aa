package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// run builds one set of programs and prints a path per line.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	switch {
	case len(args) == 0:
		tools, err := env.EnsureTools(ctx, progress)
		if err != nil {
			return err
		}

		fmt.Fprintln(out, tools.KubeAPIServer)
		fmt.Fprintln(out, tools.KubeControllerManager)
		fmt.Fprintln(out, tools.Kubectl)
		fmt.Fprintln(out, tools.Etcd)

		return nil
	case len(args) == 1 && args[0] == "operator":
		binaries, err := env.BuildBinaries(ctx, progress)
		if err != nil {
			return err
		}

		fmt.Fprintln(out, binaries.OmniAPIServer)
		fmt.Fprintln(out, binaries.OmniController)

		return nil
	case len(args) == 1 && args[0] == "omni":
		omni, err := env.EnsureRealOmni(ctx, progress)
		if err != nil {
			return err
		}

		fmt.Fprintln(out, omni.Server)
		fmt.Fprintln(out, omni.Stub)

		return nil
	case len(args) == 1 && args[0] == "flux":
		for _, component := range env.FluxComponents() {
			program, err := env.EnsureFlux(ctx, progress, component)
			if err != nil {
				return err
			}

			fmt.Fprintln(out, program.Binary)
		}

		return nil
	case len(args) == 1 && args[0] == "certmanager":
		_, err := env.EnsureCertManager(ctx, progress)

		return err
	default:
		return fmt.Errorf("unknown arguments %q: give none, operator, omni, flux or certmanager", args)
	}
}
