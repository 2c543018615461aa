package env

import (
	"context"
	"errors"
	"fmt"
)

// StackOptions says how to start the whole stack. The zero value is usable: it serves all
// namespaces.
type StackOptions struct {
	// Hub is the management cluster. WithoutControllerManager is ignored.
	Hub Options

	// OmniAPIServer and Controller are this repository's programs. A Controller with neither
	// Namespace nor AllNamespaces serves all namespaces.
	OmniAPIServer OmniAPIServerOptions
	Controller    ControllerOptions
}

// Stack is a hub on which the operator runs. Hub.Stop stops all of it.
type Stack struct {
	*Hub

	OmniAPIServer *OmniAPIServer
	Controller    *Controller
}

// StartStack builds and starts everything, in the order that the package comment explains,
// and returns when all of it works. On an error everything is stopped again.
func StartStack(ctx context.Context, options StackOptions) (*Stack, error) {
	options.Hub.WithoutControllerManager = true

	hub, err := StartHub(ctx, options.Hub)
	if err != nil {
		return nil, err
	}

	stack := &Stack{Hub: hub}
	if err := stack.startOperator(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start stack: %w", err), hub.Stop())
	}

	return stack, nil
}

func (s *Stack) startOperator(ctx context.Context, options StackOptions) error {
	if err := s.buildMissing(ctx, &options); err != nil {
		return err
	}

	var err error
	if s.OmniAPIServer, err = s.StartOmniAPIServer(ctx, options.OmniAPIServer); err != nil {
		return err
	}

	if err := s.StartControllerManager(ctx); err != nil {
		return err
	}

	if namespace := options.Controller.Namespace; namespace == "" {
		options.Controller.AllNamespaces = true
	} else if err := s.ensureNamespace(ctx, namespace); err != nil {
		return err
	}

	s.Controller, err = s.StartController(ctx, options.Controller)

	return err
}

// buildMissing fills in the programs that the caller did not name, with one build for both.
func (s *Stack) buildMissing(ctx context.Context, options *StackOptions) error {
	if options.OmniAPIServer.Binary != "" && options.Controller.Binary != "" {
		return nil
	}

	binaries, err := BuildBinaries(ctx, s.progress)
	if err != nil {
		return err
	}

	if options.OmniAPIServer.Binary == "" {
		options.OmniAPIServer.Binary = binaries.OmniAPIServer
	}

	if options.Controller.Binary == "" {
		options.Controller.Binary = binaries.OmniController
	}

	return nil
}
