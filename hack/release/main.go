// Command release makes what a release consists of, and publishes it. `make release-dry-run` and the workflow of releases
// run it; docs/development/releases.md says how a release is made.
//
//	release check            # may this commit become the release VERSION?
//	release build -out DIR   # programs, image, chart, SBOMs, checksums, notes: no network but the module proxy
//	release push             # dist/ to the registry
//	release sign             # what was pushed, and the checksums, with cosign and the identity of the workflow
//	release github           # dist/ as a release of GitHub
//
// What build writes depends on the sources, COMMIT, SOURCE_DATE_EPOCH (the time of the commit), REGISTRY and the version
// of Go, and on nothing else: not on the machine, the directory, the time or what was built before.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("one of check, build, push, sign, github is missing")
	}

	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	dir := flags.String("out", "dist", "where the artefacts are")

	if err := flags.Parse(args[1:]); err != nil {
		return err
	}

	r, err := describe(".", os.Getenv)
	if err != nil {
		return err
	}

	switch args[0] {
	case "check":
		return r.check(ctx, os.Getenv("VERSION"))
	case "build":
		return r.build(ctx, *dir, r.compile)
	case "push":
		return r.push(ctx, *dir, credentials(os.Getenv))
	case "sign":
		return r.sign(ctx, *dir, execute)
	case "github":
		return r.github(ctx, *dir, execute)
	default:
		return fmt.Errorf("there is no %q", args[0])
	}
}
