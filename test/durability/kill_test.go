package durability

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	typed "omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/typed/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	writers = 4
	// namesPerWriter is small, so that objects are made, changed and deleted again and again.
	namesPerWriter = 6
	// longestRun is the most that writers write before the kill.
	longestRun = 800 * time.Millisecond
	// startKills is how many of a hundred kills come while the server starts.
	startKills = 15
	// longestStart is the most that a start is let go on before such a kill.
	longestStart = 1500 * time.Millisecond
)

// TestAcknowledgedWritesSurviveKill writes through the real server with its etcd inside and kills it (SIGKILL) at
// random moments, some of them during the start. Whatever was acknowledged has to be there after the restart, exactly.
func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}

	t.Logf("-kills %d -seed %d", *kills, *seed)

	hub := newHub(t)

	server, err := hub.StartOmniAPIServer(t.Context(), env.OmniAPIServerOptions{Binary: *apiServer})
	if err != nil {
		t.Fatal(err)
	}

	d := &durability{t: t, server: server, ledger: newLedger(), chance: rand.New(rand.NewPCG(*seed, 0)), begin: time.Now()}

	for round := range *kills {
		d.round(round)

		if t.Failed() {
			break
		}
	}

	t.Logf("seed %d: %s; %s", *seed, d.ledger.tally, time.Since(d.begin).Round(time.Second))
}

// durability is a run of the test.
type durability struct {
	t      *testing.T
	server *env.OmniAPIServer
	ledger *ledger
	chance *rand.Rand
	begin  time.Time
}

// round writes, kills, starts again and looks.
func (d *durability) round(number int) {
	d.t.Helper()

	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()

	var (
		running sync.WaitGroup
		killed  = make(chan struct{})
		failed  = make(chan error, writers)
	)

	for i := range writers {
		w := &writer{
			ledger: d.ledger, id: i, round: number,
			chance: rand.New(rand.NewPCG(*seed, uint64(number*writers+i+1))),
			client: clientset(d.t, d.server.RESTConfig()).OmniWorkers(metav1.NamespaceDefault),
		}

		running.Go(func() { failed <- w.run(ctx, killed) })
	}

	pause(ctx, rand64(d.chance, longestRun))
	close(killed)
	d.server.Kill()
	stop()
	running.Wait()
	close(failed)

	for err := range failed {
		if err != nil {
			d.t.Error(err)
		}
	}

	d.ledger.tally.kills++
	d.restart()
	d.look(number)
}

// restart starts the server, and sometimes kills it again before it is ready.
func (d *durability) restart() {
	d.t.Helper()

	for d.chance.IntN(100) < startKills {
		ctx, cancel := context.WithTimeout(d.t.Context(), rand64(d.chance, longestStart))
		_ = d.server.RestartDirectly(ctx) // interrupted by the timeout, most of the time
		cancel()
		d.server.Kill()
		d.ledger.tally.kills++
	}

	if err := d.server.RestartDirectly(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *durability) look(number int) {
	d.t.Helper()

	ctx, cancel := context.WithTimeout(d.t.Context(), requestTimeout)
	defer cancel()

	list, err := clientset(d.t, d.server.RESTConfig()).OmniWorkers(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		d.t.Fatalf("after kill %d: %v", number+1, err)
	}

	for _, err := range d.ledger.check(list) {
		d.t.Errorf("after kill %d: %v", number+1, err)
	}
}

func rand64(chance *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(chance.Int64N(int64(most)))
}

// writer makes, changes and deletes objects of its own, one request after the other.
type writer struct {
	ledger    *ledger
	id, round int
	chance    *rand.Rand
	client    typed.OmniWorkersInterface
	sent      int
}

// run writes until a request fails. That is an error if the server was not killed.
func (w *writer) run(ctx context.Context, killed <-chan struct{}) error {
	for ctx.Err() == nil {
		if err := w.write(ctx); err != nil {
			select {
			case <-killed: // closed before the kill
				return nil
			default:
				return fmt.Errorf("writer %d, round %d: %w", w.id, w.round, err)
			}
		}
	}

	return nil
}

// write does one write of a random kind to a random object.
func (w *writer) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	name := fmt.Sprintf("w%d-%d", w.id, w.chance.IntN(namesPerWriter))
	w.sent++
	mark, size := fmt.Sprintf("%d/%d/%d", w.round, w.id, w.sent), int32(w.chance.IntN(100))
	current := w.ledger.entry(name).acknowledged

	if current == nil {
		w.ledger.sending(name, attempt{"create", mark})
		object := newWorkers(name, size)
		object.Annotations = map[string]string{markKey: mark}

		return w.answer(name)(w.client.Create(ctx, object, metav1.CreateOptions{}))
	}

	switch w.chance.IntN(5) {
	case 0:
		w.ledger.sending(name, attempt{verb: "delete"})

		if err := w.client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}

		return w.ledger.answered(name, nil)
	case 1, 2:
		w.ledger.sending(name, attempt{"update", mark})
		object := current.DeepCopy()
		object.Annotations[markKey] = mark
		*object.Spec.MachineClass.Size = *newWorkers(name, size).Spec.MachineClass.Size

		return w.answer(name)(w.client.Update(ctx, object, metav1.UpdateOptions{}))
	default:
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{markKey: mark}},
			"spec":     map[string]any{"machineClass": map[string]any{"size": size}},
		})
		if err != nil {
			return err
		}

		w.ledger.sending(name, attempt{"patch", mark})

		return w.answer(name)(w.client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}))
	}
}

// answer takes what the server answered into the ledger.
func (w *writer) answer(name string) func(*v1alpha1.OmniWorkers, error) error {
	return func(object *v1alpha1.OmniWorkers, err error) error {
		if err != nil {
			return err
		}

		object.TypeMeta = metav1.TypeMeta{}

		return w.ledger.answered(name, object)
	}
}
