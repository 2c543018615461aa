package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

func (d *demo) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// kubectl shows the command and what it prints, as in a terminal.
func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	d.say("$ kubectl %s", commandLine(args))

	return d.show(d.stack.Kubectl(ctx, append([]string{"-n", namespace}, args...)...))
}

// inside is kubectl with a kubeconfig that leads to cluster-01; the variable stands for its path.
func (d *demo) inside(ctx context.Context, kubeconfig variable, args ...string) (string, error) {
	d.say("$ kubectl --kubeconfig=$%s %s", kubeconfig.name, commandLine(args))

	return d.show(d.stack.Kubectl(ctx, append([]string{"--kubeconfig=" + kubeconfig.path}, args...)...))
}

// show prints what kubectl printed.
func (d *demo) show(stdout, stderr string, err error) (string, error) {
	if out := strings.TrimRight(stdout+stderr, "\n"); out != "" {
		d.say("%s", indent(out))
	}

	return stdout, err
}

// quiet is kubectl without showing anything.
func (d *demo) quiet(ctx context.Context, stdin string, args ...string) (string, error) {
	stdout, _, err := d.stack.KubectlInput(ctx, strings.NewReader(stdin), append([]string{"-n", namespace}, args...)...)

	return stdout, err
}

// until polls and says how long it took.
func (d *demo) until(ctx context.Context, what string, check func(context.Context) error) error {
	start := time.Now()
	if err := env.Eventually(ctx, stepWait, what, check); err != nil {
		return err
	}

	d.say("  -> %s, after %s", what, time.Since(start).Round(10*time.Millisecond))

	return nil
}

// indent moves every line that is not empty to the right.
func indent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			lines[i] = ""
		} else {
			lines[i] = "  " + line
		}
	}

	return strings.Join(lines, "\n")
}

// commandLine joins arguments so that they can be pasted into a shell.
func commandLine(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = arg
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'{}[]()$*?<>|&;\\`") {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}

	return strings.Join(quoted, " ")
}
