package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// holdOpen prints how to use the stack and waits for the interrupt.
func (d *demo) holdOpen(ctx context.Context) error {
	if err := d.connect(ctx); err != nil {
		return err
	}

	release, err := d.writeRelease()
	if err != nil {
		return err
	}

	if err := d.workload.await(ctx); err != nil {
		return fmt.Errorf("start the Kubernetes of %s: %w", exampleCluster, err)
	}

	d.say("\nIn another terminal, in this directory:\n\n  export KUBECONFIG=%s", d.stack.KubeconfigPath)
	d.say("  kubectl config set-context --current --namespace=%s", namespace)
	d.say("  kubectl apply%s", files(d.dir, clusterExamples[:]...))
	d.say("  kubectl get omni")
	d.sayReach(release)
	d.say("\nkubectl is at %s if you have none.", d.stack.KubectlPath())
	d.say("A simulated Omni serves %s. Logs are in %s.", d.omni.Endpoint(), filepath.Join(d.stack.Dir, "logs"))
	d.say("Ctrl-C stops everything and removes it.")

	<-ctx.Done()

	d.say("\nStopping ...")

	return nil
}

// sayReach prints how to reach into cluster-01.
func (d *demo) sayReach(release string) {
	admin := d.admin()

	d.say("\nBehind %s there is a Kubernetes, without nodes. As its administrator:\n\n  %s=%s", exampleCluster, admin.name, admin.path)

	for _, args := range accessCommands() {
		d.say("  kubectl --kubeconfig=$%s %s", admin.name, commandLine(args))
	}

	d.say("\nand, from the management cluster, a kubeconfig for automation, a Secret and a chart:\n\n  RELEASE=%s", release)
	d.say("  kubectl create secret docker-registry %s --docker-username=robot --docker-password=secret", sourceSecret)
	d.say("  kubectl apply%s -f $RELEASE", files(d.dir, exportExample, syncExample))
	d.say("  kubectl get oke,oss,ohr")
	d.say("  kubectl --kubeconfig=$%s get secrets,configmaps -n %s", admin.name, apps)
}
