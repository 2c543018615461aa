package env

import (
	"context"
	"errors"
)

// ProgramOptions says what to start. All but Env is required.
type ProgramOptions struct {
	// Name tells the programs of a hub apart and names the log file.
	Name string
	// Binary is the path of the program.
	Binary string
	// Args are its arguments, all of them.
	Args []string
	// Env is its whole environment, as NAME=value: nothing is inherited, as in a container.
	Env []string
	// Ready returns nil when the program does its work.
	Ready func(context.Context) error
}

// Program is a running program of a test's own choice.
type Program struct{ *component }

// StartProgram starts a program with exactly these arguments and this environment, as a container of a Pod would,
// and returns when it is ready. Hub.Stop stops it. The context bounds the start only.
func (h *Hub) StartProgram(ctx context.Context, options ProgramOptions) (*Program, error) {
	if options.Name == "" || options.Binary == "" || options.Ready == nil {
		return nil, errors.New("start program: Name, Binary and Ready are required")
	}

	// env(1) replaces itself by the program, so that signals reach it.
	args := append([]string{"-i"}, options.Env...)
	args = append(append(args, options.Binary), options.Args...)

	p := &Program{&component{hub: h, ready: options.Ready, spec: processSpec{name: options.Name, binary: "env", args: args}}}

	return p, p.launch(ctx)
}

// FreePort returns a loopback port that no other program of the tests uses until Stop.
func (h *Hub) FreePort() (int, error) {
	p, err := h.reservePort()
	if err != nil {
		return 0, err
	}

	return p.number, nil
}
