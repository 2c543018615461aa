package kubeconfigsecret

import (
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		name  string
		use   use
		letGo bool
		again time.Duration
	}{
		{"nobody needs it", use{}, true, 0},
		{"nobody needs it, and it is deleted", use{deleting: true, since: time.Second}, true, 0},
		{"in use", use{users: 2}, false, 0},
		{"a user leaves", use{users: 2, leaving: 1}, false, 0},
		{"deleted, a user leaves, for however long", use{users: 1, leaving: 1, deleting: true, since: time.Hour}, false, 0},
		{"deleted a moment ago: the users may follow", use{users: 1, deleting: true, since: 10 * time.Second}, false, 20 * time.Second},
		{"the namespace goes, and the users cannot be deleted now", use{users: 1, deleting: true, since: time.Hour, namespaceGoes: true}, false, grace},
		{"the namespace goes, and the users are gone", use{deleting: true, since: time.Hour, namespaceGoes: true}, true, 0},
		{"deleted alone", use{users: 1, deleting: true, since: grace}, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			letGo, again := test.use.decide()
			if letGo != test.letGo || again != test.again {
				t.Errorf("got %v, %v; want %v, %v", letGo, again, test.letGo, test.again)
			}
		})
	}
}
