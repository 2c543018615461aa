package app

import (
	"context"
	"errors"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver/embeddedetcd"
)

// Run serves until the context ends. The embedded etcd starts before and stops after the server.
func Run(ctx context.Context, options *Options) error {
	if options.EtcdDataDir == "" {
		return serve(ctx, options)
	}

	etcd, err := embeddedetcd.Start(ctx, options.EtcdDataDir)
	if err != nil {
		return err
	}

	options.Storage.StorageConfig.Transport.ServerList = []string{etcd.Endpoint()}

	ctx, cancel := etcd.WhileRunning(ctx)
	defer cancel()

	err = serve(ctx, options)
	if cause := context.Cause(ctx); errors.Is(cause, embeddedetcd.ErrStopped) {
		err = errors.Join(err, cause)
	}

	return errors.Join(err, etcd.Stop())
}

func serve(ctx context.Context, options *Options) error {
	config, err := options.Config(ctx)
	if err != nil {
		return err
	}

	server, err := config.Complete().New()
	if err != nil {
		return err
	}

	return server.Run(ctx)
}
