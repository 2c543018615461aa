package e2ecertmanager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// kubelet fills the volumes of Pods from their Secrets as the real one does: all files of a volume change in one step, by a link
// to a new directory, and what a Secret that is gone left there stays.
type kubelet struct {
	client  kubernetes.Interface
	volumes []*secretVolume

	mu   sync.Mutex
	held bool
	err  error
}

// secretVolume is a directory that is made from a Secret.
type secretVolume struct {
	secret, dir string
	version     string // of the Secret that is there
	writes      int
}

// startKubelet serves these Pods until the test ends.
func startKubelet(t *testing.T, client kubernetes.Interface, pods ...*env.Pod) *kubelet {
	t.Helper()

	k := &kubelet{client: client}

	for _, pod := range pods {
		for secret, dir := range pod.Secrets() {
			k.volumes = append(k.volumes, &secretVolume{secret: secret, dir: dir})
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})

	go func() {
		defer close(done)

		for ctx.Err() == nil {
			k.sync(ctx)

			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()

	t.Cleanup(func() {
		cancel()
		<-done
	})

	return k
}

// hold lets the files be late until release: the real kubelet takes up to two minutes.
func (k *kubelet) hold() { k.setHeld(true) }

func (k *kubelet) release() { k.setHeld(false) }

func (k *kubelet) setHeld(held bool) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.held = held
}

func (k *kubelet) sync(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.held {
		return
	}

	k.err = nil

	for _, volume := range k.volumes {
		k.err = errors.Join(k.err, volume.sync(ctx, k.client))
	}
}

// mounted returns nil when every volume of a Pod is there, without which it does not start.
func (k *kubelet) mounted(pod *env.Pod) error {
	k.mu.Lock()
	defer k.mu.Unlock()

	var errs []error

	for _, volume := range k.volumes {
		if pod.Secrets()[volume.secret] == volume.dir && volume.version == "" {
			errs = append(errs, fmt.Errorf("secret %q not found (%w)", volume.secret, k.err))
		}
	}

	return errors.Join(errs...)
}

func (v *secretVolume) sync(ctx context.Context, client kubernetes.Interface) error {
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, v.secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil || secret.ResourceVersion == v.version {
		return err
	}

	if err := v.write(secret.Data); err != nil {
		return err
	}

	v.version = secret.ResourceVersion

	return nil
}

// write makes a new directory, leads the link to it, and removes the one from before.
func (v *secretVolume) write(files map[string][]byte) error {
	v.writes++

	link, next := filepath.Join(v.dir, "..data"), filepath.Join(v.dir, "..data_tmp")
	before, _ := os.Readlink(link) // none the first time
	data := fmt.Sprintf("..%s.%d", time.Now().Format("2006_01_02_15_04_05"), v.writes)

	if err := os.Mkdir(filepath.Join(v.dir, data), 0o700); err != nil {
		return err
	}

	for name, content := range files {
		if err := os.WriteFile(filepath.Join(v.dir, data, name), content, 0o400); err != nil {
			return err
		}
	}

	if err := errors.Join(os.Symlink(data, next), os.Rename(next, link)); err != nil {
		return err
	}

	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}

	if before == "" {
		return nil
	}

	return os.RemoveAll(filepath.Join(v.dir, before))
}
