package session

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/api/v1alpha1"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/bounds"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
)

// encoded returns a message of a watch in its form on the wire.
func encoded(t *testing.T, message *v1alpha1.WatchResponse) mem.BufferSlice {
	t.Helper()

	wire, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}

	return mem.BufferSlice{mem.SliceBuffer(wire)}
}

// TestManyEventsInOneMessageAreNotDecoded checks that a message of a million events, which weighs just what a message
// may, takes no memory.
func TestManyEventsInOneMessageAreNotDecoded(t *testing.T) {
	foreigntest.Sequential(t)

	const guards, noops = 4, 1_048_000

	account := bounds.NewBudget(bounds.Limits{}).Open("team", func(error) {})
	bomb := mem.BufferSlice{mem.SliceBuffer(bytes.Repeat([]byte{0x0a, 0x02, 0x10, 0x05}, noops))} // event (1): event_type (2): NOOP
	messages := make([]v1alpha1.WatchResponse, guards)

	peak := heapPeak(t)

	for number := range messages {
		watch, err := bounds.OpenWatch(account, bounds.MaxEvent)
		if err != nil {
			t.Fatal(err)
		}

		if err := guardOfWatch(watch).Unmarshal(bomb, &messages[number]); !errors.Is(err, omni.ErrTooMuchData) {
			t.Errorf("error %v, with %d events", err, len(messages[number].GetEvent()))
		}
	}

	if got := peak(); got > 64<<20 {
		t.Errorf("%d MiB were in use", got>>20)
	}
}

// TestHandledMessagesAreCharged checks that an account has what the messages of its watches become, before they are
// decoded and while they are handled, so that many watches together stay within its bound.
func TestHandledMessagesAreCharged(t *testing.T) {
	const bound = 96 << 20

	ended := make(chan error, 1)
	account := bounds.NewBudget(bounds.Limits{Memory: bound}).Open("team", func(err error) { ended <- err })

	heavy := omnitest.Invented(omnires.ClusterType, 0) // within the bound of labels, and long
	for number := range 900 {
		heavy.Metadata.Labels[fmt.Sprint(number)] = strings.Repeat("x", 8<<10)
	}

	message := encoded(t, tellOf(heavy))
	messages := make([]v1alpha1.WatchResponse, 17)
	peak := heapPeak(t)

	var err error

	handled := 0
	for ; err == nil && handled < len(messages); handled++ {
		var watch *bounds.Watch
		if watch, err = bounds.OpenWatch(account, bounds.MaxEvent); err != nil {
			break
		}

		_, before := account.Held()
		err = guardOfWatch(watch).Unmarshal(message, &messages[handled])

		if _, after := account.Held(); err == nil && after-before < 14<<20 {
			t.Errorf("message %d: %d KiB are charged", handled, (after-before)>>10)
		}
	}

	if !errors.Is(err, omni.ErrTooMuchData) || handled > 7 {
		t.Errorf("%d messages were decoded, then %v", handled, err)
	}

	if got := peak(); got > bound+32<<20 {
		t.Errorf("%d MiB were in use", got>>20)
	}

	if err := <-ended; !strings.Contains(err.Error(), "--omni-max-memory") {
		t.Error(err)
	}
}

// TestHandledMessagesAreCredited checks that a message is charged until the next one is asked for or the watch ends.
func TestHandledMessagesAreCredited(t *testing.T) {
	account := bounds.NewBudget(bounds.Limits{}).Open("team", func(error) {})
	held := func() int64 {
		_, bytes := account.Held()

		return bytes
	}

	watch, err := bounds.OpenWatch(account, bounds.FirstEvent)
	if err != nil {
		t.Fatal(err)
	}

	idle := held()
	handler := guardOfWatch(watch)
	stream := &measuredStream{
		ClientStream: &answeringStream{answers: []error{nil}}, guard: handler, answered: func() {}, ended: func(error) {},
	}

	for range 3 {
		if err := handler.Unmarshal(encoded(t, tellOf(omnitest.Invented(omnires.ClusterType, 0))), &v1alpha1.WatchResponse{}); err != nil {
			t.Fatal(err)
		}
	}

	if held() <= idle || held() > idle+8<<10 {
		t.Errorf("%d bytes are charged for one message", held()-idle)
	}

	if err := stream.RecvMsg(nil); err != nil || held() != idle {
		t.Errorf("%d bytes are charged for no message, %v", held()-idle, err)
	}

	if err := handler.Unmarshal(encoded(t, tellOf(omnitest.Invented(omnires.ClusterType, 0))), &v1alpha1.WatchResponse{}); err != nil {
		t.Fatal(err)
	}

	watch.Close()
	watch.Close()

	if held() != 0 {
		t.Errorf("%d bytes are charged for nothing", held())
	}

	if err := handler.Unmarshal(encoded(t, tellOf(omnitest.Invented(omnires.ClusterType, 0))), &v1alpha1.WatchResponse{}); err == nil || held() != 0 {
		t.Errorf("a message after the end: %v, %d bytes", err, held())
	}
}
