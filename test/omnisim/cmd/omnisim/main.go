package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "omnisim:", err)
		os.Exit(1)
	}
}

// flags are the values of the command line.
type flags struct {
	listen, keyOut, caOut, account, role, omniVersion string
	plaintext                                         bool
	machines                                          int
	phase, keyLifetime                                time.Duration
	classes                                           classFlag
}

// classFlag collects --machine-class name=selector, once for each class.
type classFlag map[string]string

// String returns nothing: there is no default.
func (c classFlag) String() string { return "" }

// Set adds a class.
func (c classFlag) Set(value string) error {
	name, selector, ok := strings.Cut(value, "=")
	if !ok || name == "" || selector == "" {
		return errors.New("want name=selector, such as any=omni.sidero.dev/arch")
	}

	c[name] = selector

	return nil
}

func parse(args []string, out io.Writer) (flags, error) {
	parsed := flags{classes: classFlag{}}
	set := flag.NewFlagSet("omnisim", flag.ContinueOnError)
	set.SetOutput(out)
	set.StringVar(&parsed.listen, "listen", "127.0.0.1:0", "loopback address to serve on; port 0 takes a free one")
	set.BoolVar(&parsed.plaintext, "plaintext", false, "serve without TLS")
	set.StringVar(&parsed.keyOut, "key-out", "", "file for the service-account key (mode 0600)")
	set.StringVar(&parsed.caOut, "ca-out", "", "file for the certificate authority, PEM")
	set.StringVar(&parsed.account, "account", "operator", "name of the service account")
	set.StringVar(&parsed.role, "role", string(omnisim.RoleOperator), "role of the service account: None, Reader, Operator or Admin")
	set.DurationVar(&parsed.keyLifetime, "key-lifetime", 365*24*time.Hour, "how long the service-account key is valid")
	set.IntVar(&parsed.machines, "machines", 0, "connected machines to begin with")
	set.DurationVar(&parsed.phase, "phase", omnisim.DefaultPhase, "time of one step of a machine or an upgrade")
	set.StringVar(&parsed.omniVersion, "omni-version", omnisim.DefaultVersion, "version of Omni that is spoken: 1.8, 1.9, 1.11 or 1.14")
	set.Var(parsed.classes, "machine-class", "machine class as name=selector; may be repeated")

	return parsed, set.Parse(args)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	parsed, err := parse(args, out)
	if err != nil {
		return err
	}

	sim, err := omnisim.Start(omnisim.Options{
		Address:     parsed.listen,
		Plaintext:   parsed.plaintext,
		Machines:    parsed.machines,
		Phase:       parsed.phase,
		OmniVersion: parsed.omniVersion,
		Logf:        func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) },
	})
	if err != nil {
		return err
	}

	defer sim.Close()

	if err = writeCredentials(sim, parsed); err != nil {
		return err
	}

	for name, selector := range parsed.classes {
		if err = sim.AddMachineClass(name, selector); err != nil {
			return err
		}
	}

	fmt.Fprintln(out, sim.Endpoint())
	<-ctx.Done()

	return nil
}

// writeCredentials creates the service account and writes the files for clients.
func writeCredentials(sim *omnisim.Server, parsed flags) error {
	key, err := sim.CreateServiceAccount(parsed.account, omnisim.Role(parsed.role), parsed.keyLifetime)
	if err != nil {
		return fmt.Errorf("create service account: %w", err)
	}

	if parsed.keyOut != "" {
		if err = os.WriteFile(parsed.keyOut, []byte(key+"\n"), 0o600); err != nil {
			return fmt.Errorf("write key: %w", err)
		}
	}

	if parsed.caOut != "" && !parsed.plaintext {
		if err = os.WriteFile(parsed.caOut, sim.CAPEM(), 0o644); err != nil {
			return fmt.Errorf("write CA: %w", err)
		}
	}

	return nil
}
