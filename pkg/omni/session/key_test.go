package session

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
	pgpcrypto "github.com/ProtonMail/gopenpgp/v3/crypto"
	"github.com/siderolabs/go-api-signature/pkg/pgp"
	"github.com/siderolabs/go-api-signature/pkg/serviceaccount"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// newEntity returns a PGP key pair like those of Omni's tools.
func newEntity(t testing.TB, created time.Time, keySeconds, signatureSeconds uint32) *pgpcrypto.Key {
	t.Helper()

	entity, err := openpgp.NewEntity("operator", "test", "operator@serviceaccount.omni.sidero.dev", &packet.Config{
		Algorithm:       packet.PubKeyAlgoEdDSA,
		DefaultHash:     crypto.SHA256,
		KeyLifetimeSecs: keySeconds,
		SigLifetimeSecs: signatureSeconds,
		Time:            func() time.Time { return created },
	})
	if err != nil {
		t.Fatal(err)
	}

	key, err := pgpcrypto.NewKeyFromEntity(entity)
	if err != nil {
		t.Fatal(err)
	}

	return key
}

func encodeKey(t testing.TB, name string, key *pgpcrypto.Key) string {
	t.Helper()

	wrapped, err := pgp.NewKey(key)
	if err != nil {
		t.Fatal(err)
	}

	encoded, err := serviceaccount.Encode(name, wrapped)
	if err != nil {
		t.Fatal(err)
	}

	return encoded
}

// testKey returns a valid key of a service account named "operator".
func testKey(t *testing.T) Key {
	t.Helper()

	created := time.Now().Add(-time.Hour)

	key, err := ParseServiceAccountKey([]byte(encodeKey(t, "operator", newEntity(t, created, 86400, 86400))))
	if err != nil {
		t.Fatal(err)
	}

	return key
}

func encodeDocument(t testing.TB, document any) string {
	t.Helper()

	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}

	return base64.StdEncoding.EncodeToString(text)
}

func TestParseServiceAccountKeyRefuses(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	valid := encodeKey(t, "operator", newEntity(t, created, 3600, 3600))

	public, err := newEntity(t, created, 3600, 3600).GetArmoredPublicKey()
	if err != nil {
		t.Fatal(err)
	}

	lockedKey, err := pgpcrypto.PGP().LockKey(newEntity(t, created, 3600, 3600), []byte("passphrase"))
	if err != nil {
		t.Fatal(err)
	}

	locked, err := lockedKey.Armor()
	if err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		value string
		want  error
	}{
		"empty":                {"", omni.ErrKeyEmpty},
		"only white space":     {" \n\t\n", omni.ErrKeyEmpty},
		"environment block":    {"OMNI_ENDPOINT=https://omni.example\nOMNI_SERVICE_ACCOUNT_KEY=" + valid, omni.ErrKeyEnvironmentBlock},
		"exported variables":   {"export OMNI_ENDPOINT=https://omni.example", omni.ErrKeyEnvironmentBlock},
		"one variable":         {"OMNI_SERVICE_ACCOUNT_KEY=" + valid, omni.ErrKeyEnvironmentBlock},
		"older variable":       {"SIDERO_SERVICE_ACCOUNT_KEY=" + valid, omni.ErrKeyEnvironmentBlock},
		"wrapped lines":        {valid[:60] + "\n" + valid[60:], omni.ErrKeyWhitespace},
		"inner space":          {valid[:60] + " " + valid[60:], omni.ErrKeyWhitespace},
		"not base64":           {"not!base64", omni.ErrKeyNotBase64},
		"cut off":              {valid[:len(valid)-3], omni.ErrKeyNotBase64},
		"quoted":               {`"` + valid + `"`, omni.ErrKeyNotBase64},
		"far too long":         {strings.Repeat("QUFB", maxKeyBytes/4+1), omni.ErrKeyNotBase64},
		"not JSON":             {base64.StdEncoding.EncodeToString([]byte("hello")), omni.ErrKeyNotJSON},
		"encoded twice":        {base64.StdEncoding.EncodeToString([]byte(valid)), omni.ErrKeyNotJSON},
		"a JSON list":          {encodeDocument(t, []string{"a"}), omni.ErrKeyNotJSON},
		"two JSON documents":   {base64.StdEncoding.EncodeToString([]byte(`{"name":"a","pgp_key":"b"}{}`)), omni.ErrKeyNotJSON},
		"no name":              {encodeDocument(t, map[string]string{"pgp_key": "x"}), omni.ErrKeyNoName},
		"no key":               {encodeDocument(t, map[string]string{"name": "operator"}), omni.ErrKeyNotPGP},
		"not a PGP key":        {encodeDocument(t, map[string]string{"name": "operator", "pgp_key": "hello"}), omni.ErrKeyNotPGP},
		"only the public half": {encodeDocument(t, map[string]string{"name": "operator", "pgp_key": public}), omni.ErrKeyNotPGP},
		"locked by passphrase": {encodeDocument(t, map[string]string{"name": "operator", "pgp_key": locked}), omni.ErrKeyNotPGP},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := ParseServiceAccountKey([]byte(test.value))
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}

			if !key.IsZero() {
				t.Error("a key came with the error")
			}

			if omni.Classify(err) != omni.ClassKeyInvalid {
				t.Errorf("class %q", omni.Classify(err))
			}

			if len(test.value) > 40 && strings.Contains(err.Error(), test.value[20:40]) {
				t.Error("the error shows the input")
			}
		})
	}
}

func TestParseServiceAccountKeyLifetime(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	for name, test := range map[string]struct {
		keySeconds, signatureSeconds uint32
		expires                      time.Time
	}{
		"as omnictl makes them":       {3600, 3600, time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)},
		"the signature ends first":    {7200, 3600, time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)},
		"the key ends first":          {3600, 7200, time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)},
		"only the key has a lifetime": {3600, 0, time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)},
		"for ever":                    {0, 0, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			encoded := encodeKey(t, "operator", newEntity(t, created, test.keySeconds, test.signatureSeconds))

			key, err := ParseServiceAccountKey([]byte("\n " + encoded + "\n"))
			if err != nil {
				t.Fatal(err)
			}

			expires, limited := key.ExpiresAt()
			if !expires.Equal(test.expires) || limited == test.expires.IsZero() {
				t.Errorf("expires %v, %v; want %v", expires, limited, test.expires)
			}

			if key.Name() != "operator" || !key.BeginsAt().Equal(created) || key.material() != encoded {
				t.Errorf("name %q, begins %v", key.Name(), key.BeginsAt())
			}

			if !key.NotYetValid(created.Add(-time.Millisecond)) || key.NotYetValid(created) {
				t.Error("wrong at the moment of its creation")
			}

			if limited && (key.Expired(test.expires.Add(-time.Second)) || !key.Expired(test.expires)) {
				t.Error("wrong at the moment of expiry")
			}

			if !limited && key.Expired(created.AddDate(100, 0, 0)) {
				t.Error("a key without a lifetime expired")
			}
		})
	}
}

func TestKeyIsNeverShown(t *testing.T) {
	key := testKey(t)
	secret := key.material()[20:60]

	encoded, err := json.Marshal(map[string]any{"key": key, "pointer": &key})
	if err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer

	slog.New(slog.NewTextHandler(&log, nil)).Info("text", "key", key, "config", Config{Key: key})
	slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "key", key, "config", Config{Key: key})

	shown := string(encoded) + log.String() + key.String() + key.GoString()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb, key) + fmt.Sprintf(verb, &key) + fmt.Sprintf(verb, Config{Key: key}) +
			fmt.Sprintf(verb, &Client{config: Config{Key: key}}) + fmt.Sprintf(verb, Session{client: &Client{config: Config{Key: key}}})
	}

	if strings.Contains(shown, secret) || strings.Contains(shown, fmt.Sprintf("%x", secret)) {
		t.Fatal("the key material is shown")
	}

	if !strings.Contains(shown, "not shown") {
		t.Fatal("the placeholder is missing")
	}
}

func TestMessageHidesTheKey(t *testing.T) {
	key := testKey(t)

	if got := omni.Message(errors.New("dial with " + key.material())); strings.Contains(got, key.material()[:100]) {
		t.Errorf("shown: %s", got)
	}
}
