package omnikubeconfigexport

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/skew"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestNextRotation(t *testing.T) {
	for name, test := range map[string]struct {
		life     lifetime
		earliest time.Time
		latest   time.Time
	}{
		"a day": {
			lifetime{ttl: 24 * time.Hour, renewBefore: 4 * time.Hour, expires: noon.Add(24 * time.Hour), rotated: noon},
			noon.Add(20*time.Hour - 72*time.Minute), noon.Add(20 * time.Hour),
		},
		"at expiration": {
			lifetime{ttl: 24 * time.Hour, expires: noon.Add(24 * time.Hour), rotated: noon},
			noon.Add(24*time.Hour - 72*time.Minute), noon.Add(24 * time.Hour),
		},
		"a year": {
			lifetime{ttl: 8760 * time.Hour, renewBefore: time.Hour, expires: noon.Add(8760 * time.Hour), rotated: noon},
			noon.Add(8759*time.Hour - 438*time.Hour), noon.Add(8759 * time.Hour),
		},
		"half of a short time is left": {
			lifetime{ttl: time.Hour, renewBefore: 56 * time.Minute, expires: noon.Add(time.Hour), rotated: noon},
			noon.Add(2 * time.Minute), noon.Add(4 * time.Minute),
		},
		"never every second": {
			lifetime{ttl: 10 * time.Minute, renewBefore: 10*time.Minute - time.Second, expires: noon.Add(10 * time.Minute), rotated: noon},
			noon.Add(time.Minute), noon.Add(time.Minute),
		},
		"Omni is 20 hours behind": {
			lifetime{ttl: 24 * time.Hour, renewBefore: 4 * time.Hour, issued: noon.Add(-20 * time.Hour), expires: noon.Add(4 * time.Hour), rotated: noon},
			noon.Add(20*time.Hour - 72*time.Minute), noon.Add(20 * time.Hour),
		},
		"Omni is 20 hours ahead": {
			lifetime{ttl: 24 * time.Hour, renewBefore: 4 * time.Hour, issued: noon.Add(20 * time.Hour), expires: noon.Add(44 * time.Hour), rotated: noon},
			noon.Add(20*time.Hour - 72*time.Minute), noon.Add(20 * time.Hour),
		},
		"a second apart": {
			lifetime{ttl: 24 * time.Hour, renewBefore: 4 * time.Hour, issued: noon.Add(-time.Second), expires: noon.Add(24*time.Hour - time.Second), rotated: noon},
			noon.Add(20*time.Hour - 73*time.Minute), noon.Add(20*time.Hour - time.Second),
		},
		"ours was 20 hours ahead": {
			lifetime{ttl: 24 * time.Hour, renewBefore: 4 * time.Hour, issued: noon, expires: noon.Add(24 * time.Hour), rotated: noon.Add(20 * time.Hour)},
			noon.Add(20*time.Hour - 72*time.Minute), noon.Add(20 * time.Hour),
		},
		"when it was written is unknown": {
			lifetime{ttl: time.Hour, renewBefore: 30 * time.Minute, expires: noon.Add(time.Hour)},
			noon.Add(27 * time.Minute), noon.Add(30 * time.Minute),
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[time.Time]bool{}

			for i := range 200 {
				test.life.seed = fmt.Sprint(i)

				next := test.life.nextRotation(noon)
				if next.Before(test.earliest.Add(-time.Second)) || next.After(test.latest) {
					t.Fatalf("%s is not between %s and %s", next, test.earliest, test.latest)
				}

				if !next.Equal(test.life.nextRotation(noon)) {
					t.Fatal("another time for the same kubeconfig")
				}

				seen[next] = true
			}

			if test.earliest.Before(test.latest) && len(seen) < 50 {
				t.Errorf("%d different times of 200: they are not spread", len(seen))
			}
		})
	}
}

func TestJudgeOwner(t *testing.T) {
	of := shape{format: v1alpha1.FormatKubeconfig, key: "kubeconfig"}
	content := map[string][]byte{"kubeconfig": []byte("x")}
	labelled := func(uid string) *corev1.Secret {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "target"}, Data: content}
		if uid != "" {
			secret.Labels = map[string]string{v1alpha1.LabelExportUID: uid}
		}

		return secret
	}
	writtenAs := func(as string) *corev1.Secret {
		secret := labelled("me")
		secret.Annotations = map[string]string{v1alpha1.AnnotationExportSecret: as}

		return secret
	}

	export := &v1alpha1.OmniKubeconfigExport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "export", UID: "me"}}
	wrote := func(name, hash string) *v1alpha1.OmniKubeconfigExport {
		written := export.DeepCopy()
		written.Status.KubeconfigHash, written.Status.TargetSecretRef = hash, &v1alpha1.TargetSecretReference{Name: name}

		return written
	}

	inHub := func(secret *corev1.Secret, hub string) *corev1.Secret {
		if secret.Labels == nil {
			secret.Labels = map[string]string{}
		}

		secret.Labels[v1alpha1.MarkHub] = hub

		return secret
	}

	for name, test := range map[string]struct {
		secret *corev1.Secret
		export *v1alpha1.OmniKubeconfigExport
		want   ownership
	}{
		"none":                    {nil, export, absent},
		"ours":                    {writtenAs("ns/target"), export, ours},
		"ours, the status is old": {writtenAs("ns/target"), wrote("former", "h"), ours},
		"annotation never there":  {labelled("me"), export, ours},
		"annotation lost":         {labelled("me"), wrote("target", "h"), ours},
		"annotation changed":      {writtenAs("ns/x"), wrote("target", "h"), ours},
		"a copy":                  {writtenAs("ns/source"), wrote("source", of.hash(content)), others},
		"a copy, status lost":     {writtenAs("ns/source"), export, others},
		"a copy without it":       {labelled("me"), wrote("source", of.hash(content)), others},
		"copied from a namespace": {writtenAs("other/target"), export, others},
		"of another export":       {labelled("you"), export, others},
		"of another, our content": {labelled("you"), wrote("target", of.hash(content)), others},
		"of nobody":               {labelled(""), export, others},
		"ours in this hub":        {inHub(writtenAs("ns/target"), thisHub), export, ours},
		"ours in the previous":    {inHub(writtenAs("ns/target"), "hub-0"), export, ours},
		"ours in another hub":     {inHub(writtenAs("ns/target"), "hub-2"), wrote("target", of.hash(content)), otherHubs},
		"a copy, another hub":     {inHub(writtenAs("ns/source"), "hub-2"), export, others},
		"another's, another hub":  {inHub(labelled("you"), "hub-2"), export, others},
		"label lost, another hub": {inHub(labelled(""), "hub-2"), wrote("target", of.hash(content)), others},
		"label lost":              {labelled(""), wrote("target", of.hash(content)), ours},
		"label lost, changed":     {labelled(""), wrote("target", "other"), others},
		"our content elsewhere":   {labelled(""), wrote("other", of.hash(content)), others},
	} {
		if got := judgeOwner(test.secret, test.export, of, hubs.Hubs{Own: thisHub, Previous: "hub-0"}); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// tokenWith makes an unsigned token.
func tokenWith(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestNeed(t *testing.T) {
	want := ingredients{User: "robot", Groups: []string{"b", "a"}, ClusterID: "id", Key: "kubeconfig", TTL: "1h"}
	good := found{
		intact: true, specHash: want.hash(),
		claims: claims{User: "robot", Groups: []string{"a", "b"}, ClusterUUID: "id", Expires: noon.Add(time.Hour).Unix()},
	}
	with := func(change func(*found)) found {
		is := good
		change(&is)

		return is
	}

	for name, test := range map[string]struct {
		owner ownership
		is    found
		now   time.Time
		want  cause
	}{
		"none":                   {absent, found{}, noon, causeFirst},
		"good":                   {ours, good, noon, causeNone},
		"a moment before":        {ours, good, noon.Add(30*time.Minute - time.Second), causeNone},
		"due":                    {ours, good, noon.Add(30 * time.Minute), causeDue},
		"expired":                {ours, good, noon.Add(time.Hour), causeExpired},
		"spec changed":           {ours, with(func(f *found) { f.specHash = "other" }), noon, causeChanged},
		"spec changed, not read": {ours, found{specHash: "other"}, noon, causeChanged},
		"broken":                 {ours, found{specHash: want.hash()}, noon, causeTampered},
		"another cluster":        {ours, with(func(f *found) { f.claims.ClusterUUID = "other" }), noon, causeTampered},
		"another user":           {ours, with(func(f *found) { f.claims.User = "admin" }), noon, causeTampered},
		"lives for ever":         {ours, with(func(f *found) { f.claims.Expires = 1 << 50 }), noon, causeTampered},
		"lives too long":         {ours, with(func(f *found) { f.claims.Expires = noon.Add(26 * time.Hour).Unix() }), noon, causeTampered},
		"clocks differ":          {ours, with(func(f *found) { f.claims.Expires = noon.Add(24 * time.Hour).Unix() }), noon, causeNone},
		"more groups":            {ours, with(func(f *found) { f.claims.Groups = []string{"a", "b", "system:masters"} }), noon, causeTampered},
		"changed and due":        {ours, with(func(f *found) { f.specHash = "other" }), noon.Add(time.Hour), causeChanged},
	} {
		life := lifetime{renewBefore: 30 * time.Minute, expires: test.is.claims.expires()} // without a ttl no jitter

		if got := need(test.owner, test.is, want, life, times{now: test.now}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestClocksThatJump: what is there stays, and nothing is issued, while nobody knows the time; what does not depend on it goes on.
func TestClocksThatJump(t *testing.T) {
	const ttl, renewBefore = 24 * time.Hour, 4 * time.Hour

	want := ingredients{User: "robot", ClusterID: "id", Key: "kubeconfig", TTL: "24h"}
	written := found{
		intact: true, recorded: true, specHash: want.hash(), rotated: noon,
		claims: claims{User: "robot", ClusterUUID: "id", Issued: noon.Unix(), Expires: noon.Add(ttl).Unix()},
	}
	with := func(change func(*found)) found {
		is := written
		change(&is)

		return is
	}
	omniAhead := func(by time.Duration) found {
		return with(func(is *found) { is.claims.Issued, is.claims.Expires = noon.Add(by).Unix(), noon.Add(by+ttl).Unix() })
	}

	for name, test := range map[string]struct {
		is     found
		now    time.Duration // after it was written
		server time.Duration // ahead of ours
		want   cause
	}{
		"nothing jumped":                         {is: written, now: time.Hour},
		"back by more than the ttl":              {is: written, now: -25 * time.Hour, want: causeDoubt},
		"back by more than the ttl, told of":     {is: written, now: -25 * time.Hour, server: 26 * time.Hour, want: causeDoubt},
		"back by less":                           {is: written, now: -10 * time.Hour, want: causeDoubt},
		"back by what clocks may differ":         {is: written, now: -20 * time.Second},
		"back, and the spec is another":          {is: with(func(is *found) { is.specHash = "other" }), now: -25 * time.Hour, want: causeChanged},
		"back, and the Secret was changed":       {is: found{specHash: want.hash()}, now: -25 * time.Hour, want: causeTampered},
		"back, and the status is lost":           {is: with(func(is *found) { is.recorded = false }), now: -25 * time.Hour, want: causeTampered},
		"back, the status is lost, told of":      {is: with(func(is *found) { is.recorded = false }), now: -25 * time.Hour, server: 26 * time.Hour, want: causeDoubt},
		"forged":                                 {is: with(func(is *found) { is.recorded, is.claims.Expires = false, noon.Add(1000*time.Hour).Unix() }), want: causeTampered},
		"ahead, told of":                         {is: written, now: 26 * time.Hour, server: -25 * time.Hour, want: causeDoubt},
		"ahead until it is due, told of":         {is: written, now: 22 * time.Hour, server: -20 * time.Hour, want: causeDoubt},
		"ahead a little, and due by both":        {is: written, now: 22 * time.Hour, server: -time.Minute, want: causeDue},
		"ahead a little, and expired by both":    {is: written, now: 25 * time.Hour, server: -time.Minute, want: causeExpired},
		"due by ours, expired by the server's":   {is: written, now: 22 * time.Hour, server: 3 * time.Hour, want: causeDue},
		"due by the server's":                    {is: written, now: 18 * time.Hour, server: 3 * time.Hour, want: causeDoubt},
		"as long as the server's differs little": {is: written, now: 20 * time.Hour, server: -30 * time.Second, want: causeDue},
		"ahead, nobody tells":                    {is: written, now: 26 * time.Hour, want: causeExpired},
		"renewed while ahead, and mended":        {is: with(func(is *found) { is.rotated = noon.Add(20 * time.Hour) }), now: time.Hour},
		"the same, and due":                      {is: with(func(is *found) { is.rotated = noon.Add(23 * time.Hour) }), now: 20 * time.Hour, want: causeDue},
		"Omni behind by 20h":                     {is: omniAhead(-20 * time.Hour), now: 5 * time.Hour},
		"Omni behind by 20h, due":                {is: omniAhead(-20 * time.Hour), now: 20 * time.Hour, want: causeDue},
		"Omni ahead by 20h":                      {is: omniAhead(20 * time.Hour), now: 0},
		"Omni ahead by 20h, due":                 {is: omniAhead(20 * time.Hour), now: 20 * time.Hour, want: causeDue},
	} {
		t.Run(name, func(t *testing.T) {
			life := lifetime{renewBefore: renewBefore, issued: test.is.claims.issued(), expires: test.is.claims.expires(), rotated: test.is.rotated}
			at := times{now: noon.Add(test.now), differ: skew.Difference{Server: "kube-apiserver", Ahead: test.server}}

			if got := need(ours, test.is, want, life, at); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestIngredientsHash(t *testing.T) {
	base := ingredients{
		User: "u", Groups: []string{"a", "b"}, TTL: "1h", ClusterName: "c", ClusterID: "id", Endpoint: "e",
		Key: "k", ContextNamespace: "n", Format: v1alpha1.FormatKubeconfig, CA: []byte("ca"),
	}
	with := func(change func(*ingredients)) ingredients {
		other := base
		change(&other)

		return other
	}

	hashes := map[string]string{base.hash(): "base"}

	for name, other := range map[string]ingredients{
		"user": with(func(i *ingredients) { i.User = "v" }), "groups": with(func(i *ingredients) { i.Groups = []string{"a"} }),
		"ttl": with(func(i *ingredients) { i.TTL = "2h" }), "cluster": with(func(i *ingredients) { i.ClusterName = "d" }),
		"cluster ID": with(func(i *ingredients) { i.ClusterID = "id2" }), "endpoint": with(func(i *ingredients) { i.Endpoint = "f" }),
		"key": with(func(i *ingredients) { i.Key = "l" }), "namespace": with(func(i *ingredients) { i.ContextNamespace = "" }),
		"format": with(func(i *ingredients) { i.Format = v1alpha1.FormatArgoCD }), "CA": with(func(i *ingredients) { i.CA = nil }),
	} {
		if same := hashes[other.hash()]; same != "" {
			t.Errorf("%s has the hash of %s", name, same)
		}

		hashes[other.hash()] = name
	}

	if with(func(i *ingredients) { i.Groups = []string{"b", "a"} }).hash() != base.hash() {
		t.Error("the order of the groups counts")
	}
}

// TestHashOutlastsReleases pins what exported Secrets keep across an upgrade of the controller: with another hash all kubeconfigs of a
// fleet would be issued anew, and nobody can revoke the old ones. See docs/development/releases.md.
func TestHashOutlastsReleases(t *testing.T) {
	const want = "5258677a2f3d786d2873c30d456e3407bfc486eea5e03c3f004317f740bac4be"

	made := ingredients{
		User: "u", Groups: []string{"b", "a"}, TTL: "1h", ClusterName: "c", ClusterID: "id", Endpoint: "e",
		Key: "k", ContextNamespace: "n", Format: v1alpha1.FormatKubeconfig, CA: []byte("ca"),
	}
	if got := made.hash(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReadToken(t *testing.T) {
	for name, test := range map[string]struct {
		token string
		want  claims
		ok    bool
	}{
		"Omni's": {
			tokenWith(`{"sub":"u","groups":["g"],"cluster":"c","cluster_uuid":"id","exp":1795348800,"iat":1795345200,"iss":"x"}`),
			claims{User: "u", Groups: []string{"g"}, Cluster: "c", ClusterUUID: "id", Expires: 1795348800, Issued: 1795345200}, true,
		},
		"no expiry":  {tokenWith(`{"sub":"u"}`), claims{}, false},
		"no JSON":    {tokenWith(`secret`), claims{}, false},
		"no base64":  {"a.***.c", claims{}, false},
		"two parts":  {"a.b", claims{}, false},
		"wrong type": {tokenWith(`{"exp":"never"}`), claims{}, false},
		"empty":      {"", claims{}, false},
	} {
		got, err := readToken(test.token)
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != test.ok {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
