package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// output is a buffer that can be read while it is written.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.buffer.String()
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	keyFile, caFile := filepath.Join(dir, "key"), filepath.Join(dir, "ca.pem")
	ctx, stop := context.WithCancel(context.Background())
	out, ended := &output{}, make(chan error, 1)

	go func() {
		ended <- run(ctx, []string{"--key-out", keyFile, "--ca-out", caFile, "--machines", "3", "--machine-class", "any=site"}, out)
	}()

	await.Until(t, "an endpoint is printed", func() bool { return strings.HasPrefix(out.String(), "https://127.0.0.1:") })

	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}

	if info, statErr := os.Stat(keyFile); statErr != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file is readable by others: %v, %v", info.Mode(), statErr)
	}

	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}

	c, err := omnisim.Connect(strings.TrimSpace(out.String()), strings.TrimSpace(string(key)), ca)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = c.Close() }()

	machines, err := safe.StateListAll[*omni.MachineStatus](ctx, c.Omni().State())
	if err != nil || machines.Len() != 3 {
		t.Errorf("%d machines (%v), want 3", machines.Len(), err)
	}

	if _, err = safe.StateGetByID[*omni.MachineClass](ctx, c.Omni().State(), "any"); err != nil {
		t.Errorf("no machine class: %v", err)
	}

	if strings.Contains(out.String(), strings.TrimSpace(string(key))) {
		t.Error("the key is in the output")
	}

	stop()

	if err = <-ended; err != nil {
		t.Error(err)
	}
}

func TestBadFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown flag":         {"--no-such-flag"},
		"class without name":   {"--machine-class", "=site"},
		"class without labels": {"--machine-class", "any"},
		"unknown role":         {"--role", "King"},
		"address":              {"--listen", "192.0.2.1:1"},
		"key file":             {"--key-out", filepath.Join(t.TempDir(), "missing", "key")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(await.Context(t), args, &output{}); err == nil {
				t.Error("no error")
			}
		})
	}
}
