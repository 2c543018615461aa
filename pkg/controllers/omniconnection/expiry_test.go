package omniconnection

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// At the time that the status tells of the connection says by itself that its key has expired, and
// nothing makes it Connected after that.
func TestExpiryIsNoticedInTime(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", metav1.ConditionTrue, "Connected")

	expires := f.get().Status.ServiceAccount.ExpirationTime.Time

	// Nothing else would wake it earlier than the interval.
	f.now = expires.Add(-time.Minute)
	if result := f.run(); result.RequeueAfter != time.Minute {
		t.Fatalf("a minute before the end: %+v", result)
	}

	f.now = expires.Add(-time.Millisecond)
	if result := f.run(); result.RequeueAfter != time.Millisecond {
		t.Fatalf("just before the end: %+v", result)
	}

	f.now = expires
	f.expect("CredentialsFound", metav1.ConditionFalse, "KeyExpired", "expired at "+words.Time(expires))

	if result := f.run(); result.RequeueAfter < interval/2 {
		t.Errorf("after the end it is looked at every %s", result.RequeueAfter)
	}

	if _, open := f.pool.Get("uid-main"); open {
		t.Error("the session is open still")
	}

	// As the real clock goes on it is woken for other reasons.
	f.now = expires.Add(time.Minute)
	f.expect("CredentialsFound", metav1.ConditionFalse, "KeyExpired")
}

// A clock of ours that is ahead ends no key, and the session stays: Omni decides by its own clock.
func TestKeyThatHasExpiredByOurClockOnly(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", metav1.ConditionTrue, "Connected")

	f.now, f.skew = f.get().Status.ServiceAccount.ExpirationTime.Add(time.Hour), -2*time.Hour
	f.expect("Reachable", metav1.ConditionTrue, "Connected")

	if _, open := f.pool.Get("uid-main"); !open {
		t.Error("the session was closed")
	}

	f.skew = -30 * time.Minute // expired by both
	f.expect("CredentialsFound", metav1.ConditionFalse, "KeyExpired")
}

// A key that ends while Omni is asked connects nobody.
func TestExpiryDuringARun(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", metav1.ConditionTrue, "Connected")

	expires := f.get().Status.ServiceAccount.ExpirationTime.Time
	f.now, f.afterCall = expires.Add(-time.Second), expires
	f.asked.Store(false)
	f.run()

	found := apimeta.FindStatusCondition(f.get().Status.Conditions, "Reachable")
	if !f.asked.Load() || found.Status != metav1.ConditionFalse || found.Reason != v1alpha1.ReasonKeyExpired {
		t.Errorf("asked %t, then %+v", f.asked.Load(), found)
	}
}

// A check that succeeded a moment ago says nothing of a key that was refused since to somebody else.
func TestARefusedCallMakesTheConnectionAskAgain(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)
	f.expect("Reachable", metav1.ConditionTrue, "Connected")

	if err := f.omni.RevokeKey(f.key); err != nil {
		t.Fatal(err)
	}

	// The answer of a moment ago counts.
	f.expect("Reachable", metav1.ConditionTrue, "Connected")

	lease, open := f.pool.Get("uid-main")
	if !open {
		t.Fatal("there is no session")
	}

	_, err := lease.Client().State().Get(t.Context(), omnires.NewCluster("demo").Metadata())
	if omni.Classify(err) != omni.ClassUnauthenticated {
		t.Fatal(err)
	}

	lease.Release()
	f.expect("Reachable", metav1.ConditionFalse, v1alpha1.ReasonUnauthenticated, "revoked")
}

// A key that was made where the clock is ahead is good, and is used as soon as it can sign. Its successor would be as young.
func TestAKeyFromAClockThatIsAhead(t *testing.T) {
	f := newFixture(t)
	f.secret("key", f.key)

	key, err := session.ParseServiceAccountKey([]byte(f.key))
	if err != nil {
		t.Fatal(err)
	}

	begins := key.BeginsAt()
	f.now = begins.Add(-time.Hour)
	f.expect("CredentialsFound", metav1.ConditionFalse, v1alpha1.ReasonClockSkew, "valid from "+words.Time(begins), "mend the clock")

	if apimeta.IsStatusConditionTrue(f.get().Status.Conditions, "Stalled") {
		t.Error("it is Stalled")
	}

	// The time goes on, and there is nothing new to write.
	f.now, f.writes = begins.Add(-5*time.Second), 0
	if result := f.run(); result.RequeueAfter != 5*time.Second || f.writes != 0 {
		t.Errorf("looked at again after %s, with %d writes", result.RequeueAfter, f.writes)
	}

	f.now = begins
	f.expect("Reachable", metav1.ConditionTrue, "Connected")
}

// A key is to be renewed a week before its end, and one with a short life not from its first day on.
func TestRenewal(t *testing.T) {
	const day = 24 * time.Hour

	begins := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	for life, left := range map[time.Duration]time.Duration{
		365 * day: 7 * day, 21 * day: 7 * day, 6 * day: 2 * day, 3 * time.Hour: time.Hour,
	} {
		expires := begins.Add(life)
		if got := expires.Sub(renewal(begins, expires)); got != left {
			t.Errorf("of %s, %s are left when it is to be renewed, want %s", life, got, left)
		}
	}

	if got := renewal(begins, time.Time{}); !got.IsZero() {
		t.Errorf("a key that does not expire is to be renewed at %s", got)
	}
}
