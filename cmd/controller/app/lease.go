package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	// leaseDuration is how long other controllers wait for a leader that does not renew its lease.
	leaseDuration = 15 * time.Second
	// renewDeadline is how long a leader tries to renew the lease before it gives up.
	renewDeadline = 10 * time.Second
	// leaseRetry is the pause between two attempts of the leader, and between two checks of those who wait.
	leaseRetry = 2 * time.Second
	// leaseMargin is how long before leaseDuration a leader has to have ended, whatever delays it.
	leaseMargin = 2 * time.Second
	// leaseCallTimeout bounds one call, so that there is time for another one before renewDeadline if a call hangs.
	leaseCallTimeout = renewDeadline / 2
	// leaderElectionLost is the text of the library's error. The library exports no error value to compare with.
	leaderElectionLost = "leader election lost"
)

// leaderLease is the lease of the leader election. It ends the process before another controller can hold the lease
// too.
//
// The library alone does not. When the hub hangs, it first tries to release the lease, for up to another ten seconds.
// And a leader that was frozen itself (a suspended node, a migrated virtual machine) goes on for ten seconds after it
// sees another's name in the lease. Two controllers that write to one Omni at the same time undo each other's
// safeguards: each of them waits to settle, asks for approval and checks without the other.
type leaderLease struct {
	resourcelock.Interface

	// lost ends the process.
	lost func(reason string)

	mu sync.Mutex
	// watchdog is the timer that ends the process; nil while this process does not hold the lease.
	watchdog *time.Timer
}

// newLeaderLease makes the lease. It also returns the library's lock inside, which needs an event recorder.
func newLeaderLease(hub *rest.Config, namespace string) (*leaderLease, *resourcelock.LeaseLock, error) {
	config := rest.CopyConfig(hub)
	config.Timeout = leaseCallTimeout

	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("set up the leader election: %w", err)
	}

	host, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("set up the leader election: %w", err)
	}

	inner := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}

	return &leaderLease{Interface: inner, lost: endProcess}, inner, nil
}

// endProcess ends this process at once, with everything in progress. That is as safe as a kill, and the only way to
// be sure that nothing continues.
func endProcess(reason string) {
	// Whoever reads standard error may hang as this process did, and then each line of the log waits for ever.
	time.AfterFunc(time.Second, func() { os.Exit(1) })

	klog.ErrorS(nil, "This controller does not lead any more and ends at once, so that no two controllers work; it will be started again and wait for the lease",
		"reason", reason)
	klog.FlushAndExit(time.Second, 1)
}

// explainLost explains the error of a lost lease; it returns other errors unchanged.
func explainLost(err error) error {
	if err == nil || !strings.Contains(err.Error(), leaderElectionLost) {
		return err
	}

	return fmt.Errorf("%w: the lease could not be renewed for %s, because the hub's kube-apiserver did not answer or refused it (the log before this "+
		"says why); whoever gets the lease works now, and this controller is one of them again when it is started again", err, renewDeadline)
}

// Get implements resourcelock.Interface.
func (l *leaderLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() && l.held() {
		l.lost("the lease " + l.Describe() + " is held by " + record.HolderIdentity)
	}

	return record, raw, err // the library looks into it
}

// Create implements resourcelock.Interface.
func (l *leaderLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	begin := time.Now()

	err := l.Interface.Create(ctx, record)
	l.wrote(begin, record, err)

	return err // the library looks into it
}

// Update implements resourcelock.Interface.
func (l *leaderLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	begin := time.Now()

	err := l.Interface.Update(ctx, record)
	l.wrote(begin, record, err)

	return err // the library looks into it
}

// wrote records until when the lease is certainly ours. Other controllers count from the time they see the record,
// which is after the start of the request that wrote it.
func (l *leaderLease) wrote(begin time.Time, record resourcelock.LeaderElectionRecord, err error) {
	if err != nil {
		return
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.watchdog != nil {
		l.watchdog.Stop()
		l.watchdog = nil
	}

	if record.HolderIdentity == l.Identity() {
		l.watchdog = time.AfterFunc(time.Until(begin.Add(leaseDuration-leaseMargin)), func() {
			l.lost(fmt.Sprintf("the lease %s could not be renewed for %s: the hub's kube-apiserver does not answer, or this process stood still",
				l.Describe(), leaseDuration-leaseMargin))
		})
	}
}

// held reports whether this process took the lease and has not released it.
func (l *leaderLease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.watchdog != nil
}
