package kubeconfigsecret

import "time"

// grace is how long a deleted Secret waits for its users to be deleted as well.
// The namespace controller deletes kind after kind, within seconds.
const grace = 30 * time.Second

// use has the facts that decide whether a Secret is still needed.
type use struct {
	users    int // objects that name the Secret
	leaving  int // of these, those that are being deleted and have not cleaned up yet
	deleting bool
	since    time.Duration // since the deletion of the Secret

	namespaceGoes bool // so the users will be deleted, too, also if that fails for now
}

// decide reports whether to release the Secret, and if not, when to check again (0: when something changes).
func (u use) decide() (letGo bool, again time.Duration) {
	switch {
	case u.users == 0:
		return true, 0
	case !u.deleting, u.leaving > 0:
		return false, 0
	case u.since < grace:
		return false, grace - u.since
	case u.namespaceGoes:
		return false, grace
	default:
		return true, 0
	}
}
