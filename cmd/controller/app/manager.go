package app

import (
	"fmt"

	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	eventrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
)

// controllerManager is the library's manager, with a recorder of events that keeps few of them in memory. Stop events
// when the manager has ended.
type controllerManager struct {
	manager.Manager
	events *eventRecorder
}

// GetEventRecorder returns the one recorder, whatever the name is: all events have one source.
func (m *controllerManager) GetEventRecorder(string) eventrecorder.EventRecorder { return m.events }

// newManager makes the manager, with a lease that is stricter than the library's.
func newManager(config *Config) (*controllerManager, error) {
	lease, lock, err := newLeaderLease(config.Hub, config.Manager.LeaderElectionNamespace)
	if err != nil {
		return nil, err
	}

	// The lease is not used without leader election.
	config.Manager.LeaderElectionResourceLockInterface = lease

	mgr, err := manager.New(config.Hub, config.Manager)
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}

	lock.LockConfig.EventRecorder = mgr.GetEventRecorderFor(lock.Identity()) //nolint:staticcheck // what the library itself takes for its lock

	client, err := eventsv1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up events: %w", err)
	}

	recorder, err := startEvents(mgr.GetScheme(), &events.EventSinkImpl{Interface: client}, mgr.GetLogger().WithName("events"))
	if err != nil {
		return nil, err
	}

	return &controllerManager{Manager: mgr, events: recorder}, nil
}
