package session

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"
	pgpcrypto "github.com/ProtonMail/gopenpgp/v3/crypto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// maxKeyBytes is the largest Secret value that ParseServiceAccountKey reads, in bytes. A real key is about 1,200 bytes.
const maxKeyBytes = 64 << 10

const redacted = "[service account key, not shown]"

// Key is a parsed service account key. The zero value is not a key.
//
// The key material is reachable only inside this package. Whenever Go prints or encodes a Key, it shows a placeholder
// instead.
type Key struct {
	// A pointer, because fmt prints the fields of unexported struct fields as they are, but never follows a pointer there.
	encoded *string
	name    string
	begins  time.Time
	expires time.Time
}

// keyDocument is the JSON document inside the base64 text.
type keyDocument struct {
	Name   string `json:"name"`
	PGPKey string `json:"pgp_key"`
}

// ParseServiceAccountKey reads the value of a Secret key that should hold a bare base64 service account key. White
// space around the value is ignored.
//
// Every error matches exactly one of the ErrKey... sentinels and contains no part of the input. A key that has expired, or is
// not valid yet, is not an error: see Key.Expired and Key.NotYetValid.
func ParseServiceAccountKey(raw []byte) (Key, error) {
	text := strings.TrimSpace(string(raw))

	if err := checkKeyForm(text); err != nil {
		return Key{}, err
	}

	document, err := decodeKeyDocument(text)
	if err != nil {
		return Key{}, err
	}

	begins, expires, err := keyLifetime(document.PGPKey)
	if err != nil {
		return Key{}, err
	}

	return Key{encoded: &text, name: document.Name, begins: begins, expires: expires}, nil
}

func checkKeyForm(text string) error {
	switch {
	case text == "":
		return omni.ErrKeyEmpty
	case strings.Contains(text, "OMNI_ENDPOINT"),
		strings.Contains(text, "OMNI_SERVICE_ACCOUNT_KEY"),
		strings.Contains(text, "SIDERO_SERVICE_ACCOUNT_KEY"):
		return omni.ErrKeyEnvironmentBlock
	case strings.ContainsAny(text, " \t\r\n\v\f"):
		return omni.ErrKeyWhitespace
	case len(text) > maxKeyBytes:
		return omni.ErrKeyNotBase64
	}

	return nil
}

func decodeKeyDocument(text string) (keyDocument, error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return keyDocument{}, omni.ErrKeyNotBase64
	}

	var document keyDocument

	decoder := json.NewDecoder(bytes.NewReader(decoded))
	if err = decoder.Decode(&document); err != nil {
		return keyDocument{}, omni.ErrKeyNotJSON
	}

	if _, err = decoder.Token(); !errors.Is(err, io.EOF) {
		return keyDocument{}, omni.ErrKeyNotJSON
	}

	if document.Name == "" {
		return keyDocument{}, omni.ErrKeyNoName
	}

	return document, nil
}

// keyLifetime reads from the key itself when it can sign first, and when it ends. The signature library's IsExpired only returns a bool, and
// panics on a negative skew.
func keyLifetime(armored string) (begins, expires time.Time, err error) {
	key, err := pgpcrypto.NewKeyFromArmored(armored)
	if err != nil {
		return time.Time{}, time.Time{}, omni.ErrKeyNotPGP
	}

	unlocked, err := key.IsUnlocked()
	if err != nil || !key.IsPrivate() || !unlocked {
		return time.Time{}, time.Time{}, omni.ErrKeyNotPGP
	}

	entity := key.GetEntity()

	// The zero time returns the self-signature without a check of its validity now.
	signature, _ := entity.PrimaryIdentity(time.Time{}, &pgppacket.Config{})
	if signature == nil {
		return time.Time{}, time.Time{}, omni.ErrKeyNotPGP
	}

	created, signed := entity.PrimaryKey.CreationTime.UTC(), signature.CreationTime.UTC()
	expires = earliest(after(created, signature.KeyLifetimeSecs), after(signed, signature.SigLifetimeSecs))

	if signed.After(created) {
		return signed, expires, nil
	}

	return created, expires, nil
}

// after adds a PGP lifetime in seconds; nil and zero both mean "for ever".
func after(start time.Time, seconds *uint32) time.Time {
	if seconds == nil || *seconds == 0 {
		return time.Time{}
	}

	return start.Add(time.Duration(*seconds) * time.Second)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}

	return a
}

// Name is the service account's name in Omni. It is not secret.
func (k Key) Name() string { return k.name }

// ExpiresAt returns the time after which the key cannot sign any more, in UTC; false for a key without a lifetime.
func (k Key) ExpiresAt() (time.Time, bool) { return k.expires, !k.expires.IsZero() }

// Expired reports whether the key's lifetime is over at the given time.
func (k Key) Expired(now time.Time) bool {
	return !k.expires.IsZero() && !now.Before(k.expires)
}

// BeginsAt returns when the key can sign first, in UTC: when it was made, by the clock of the computer where that was.
func (k Key) BeginsAt() time.Time { return k.begins }

// NotYetValid reports whether the key cannot sign yet at the given time: the clock there is behind the one where the key was
// made. OpenPGP then says of it what it says of a key that has expired.
func (k Key) NotYetValid(now time.Time) bool { return now.Before(k.begins) }

// material returns the key itself, for the client library only.
func (k Key) material() string {
	if k.encoded == nil {
		return ""
	}

	return *k.encoded
}

// IsZero reports whether k is the zero value, which is not a key.
func (k Key) IsZero() bool { return k.encoded == nil }

// String implements fmt.Stringer without the key material.
func (k Key) String() string { return redacted }

// GoString implements fmt.GoStringer without the key material.
func (k Key) GoString() string { return redacted }

// Format implements fmt.Formatter, so that no verb prints the fields.
func (k Key) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalText implements encoding.TextMarshaler without the key material.
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer without the key material.
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// keyRefusalInterval is the shortest time between two reports that Omni refuses the key: clients that keep calling must
// not make the connection check without end.
const keyRefusalInterval = 30 * time.Second

// keyRefusals detects that Omni no longer accepts the key. The key was valid when the connection was opened, so it was
// revoked since, or Omni lost it.
type keyRefusals struct {
	tell func()
	now  func() time.Time

	mu    sync.Mutex
	total uint64
	told  time.Time
}

func newKeyRefusals(tell func()) *keyRefusals {
	if tell == nil {
		tell = func() {}
	}

	return &keyRefusals{tell: tell, now: time.Now}
}

// checking marks a call of Check: its caller receives the error anyway.
type checking struct{}

// note records the outcome of a call.
func (r *keyRefusals) note(ctx context.Context, err error) {
	if err == nil || status.Code(err) != codes.Unauthenticated || ctx.Value(checking{}) != nil {
		return
	}

	r.mu.Lock()
	r.total++
	now := r.now()
	news := r.told.IsZero() || now.Sub(r.told) >= keyRefusalInterval

	if news {
		r.told = now
	}

	r.mu.Unlock()

	if news {
		r.tell()
	}
}

func (r *keyRefusals) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.total
}
