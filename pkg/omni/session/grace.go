package session

import "time"

// How long a session may be dialled and its copy be filled for the first time before that is shown, as long as nothing has
// failed: in the first moments of a leader, and after a new key, CA or endpoint. Otherwise each routine change of a key would
// show a whole fleet as not Ready, although nothing is wrong.
const (
	// ContentsGrace is for an OmniConnection that was Ready. With thousands of clusters the copies need a while.
	ContentsGrace = 2 * time.Minute
	// ReadyGrace is for what uses an OmniConnection that is shown as Ready. Its controller shows after ContentsGrace that it
	// is not, and that wakes its users.
	ReadyGrace = ContentsGrace + 30*time.Second
	// StartGrace is the same while the OmniConnection is not shown as Ready: only a new leader waits then.
	StartGrace = 10 * time.Second
)

// ContentsGrace returns how much longer the contents of a connection may be missing; not positive if that is to be shown.
// looked is when this process first looked at any connection.
func (p *Pool) ContentsGrace(uid string, looked, now time.Time) time.Duration {
	return ContentsGrace - now.Sub(p.openedSince(uid, looked))
}

// UserGrace returns how much longer what uses a connection may lack its session or the contents; not positive if that is to
// be shown. shownReady is whether the connection is shown as Ready: then its controller says if something fails. looked is
// when this process first looked for any session.
func (p *Pool) UserGrace(uid string, shownReady bool, looked, now time.Time) time.Duration {
	if !shownReady {
		return StartGrace - now.Sub(looked)
	}

	return ReadyGrace - now.Sub(p.openedSince(uid, looked))
}

// openedSince returns when the last attempt to open a session began, unless it failed or began earlier than the given time,
// which it returns then.
func (p *Pool) openedSince(uid string, earliest time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()

	if current := p.entries[uid]; current != nil && current.err == nil && current.began.After(earliest) {
		return current.began
	}

	return earliest
}
