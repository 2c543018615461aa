package omnisim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
	pgpcrypto "github.com/ProtonMail/gopenpgp/v3/crypto"
	"github.com/siderolabs/go-api-signature/pkg/pgp"
	"github.com/siderolabs/go-api-signature/pkg/serviceaccount"
	"github.com/siderolabs/omni/client/pkg/access"
)

// Role is what a caller may do. Roles are ordered: each includes the rights of those before it.
type Role string

// The roles of Omni, weakest first.
const (
	RoleNone          Role = "None"
	RoleInfraProvider Role = "InfraProvider"
	RoleReader        Role = "Reader"
	RoleOperator      Role = "Operator"
	RoleAdmin         Role = "Admin"
)

// rank returns the place of the role in the order, or -1 for an unknown role.
func (r Role) rank() int {
	return slices.Index([]Role{RoleNone, RoleInfraProvider, RoleReader, RoleOperator, RoleAdmin}, r)
}

// publicKey is a key whose signatures the server accepts.
type publicKey struct {
	key        *pgp.Key
	account    string // full identity, name@serviceaccount.omni.sidero.dev
	role       Role
	expiration time.Time
}

// accounts holds the service accounts: each has a role and any number of keys.
type accounts struct {
	mu    sync.Mutex
	roles map[string]Role
	keys  map[string]publicKey // by fingerprint
}

func newAccounts() *accounts {
	return &accounts{roles: map[string]Role{}, keys: map[string]publicKey{}}
}

// CreateServiceAccount creates a service account with one key and returns the key in the client library's format:
// base64 of a JSON document. A negative lifetime makes a key that has already expired; an existing name is an error.
// Lifetimes are rounded down to seconds.
func (s *Server) CreateServiceAccount(name string, role Role, lifetime time.Duration) (string, error) {
	key, err := generateKey(name, lifetime)
	if err != nil {
		return "", fmt.Errorf("generate key: %w", err)
	}

	public, err := key.ArmorPublic()
	if err != nil {
		return "", fmt.Errorf("export public key: %w", err)
	}

	if _, err = s.accounts.create(name, role, public); err != nil {
		return "", err
	}

	return serviceaccount.Encode(name, key)
}

// AddKey adds a key to an existing service account, as a renewal does.
func (s *Server) AddKey(name string, lifetime time.Duration) (string, error) {
	key, err := generateKey(name, lifetime)
	if err != nil {
		return "", fmt.Errorf("generate key: %w", err)
	}

	public, err := key.ArmorPublic()
	if err != nil {
		return "", fmt.Errorf("export public key: %w", err)
	}

	if _, err = s.accounts.addKey(name, public); err != nil {
		return "", err
	}

	return serviceaccount.Encode(name, key)
}

// RevokeKey removes the public half of a service-account key from the server.
func (s *Server) RevokeKey(key string) error {
	decoded, err := serviceaccount.Decode(key)
	if err != nil {
		return fmt.Errorf("decode service account key: %w", err)
	}

	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()

	fingerprint := decoded.Key.Fingerprint()
	if _, ok := s.accounts.keys[fingerprint]; !ok {
		return errors.New("the server does not know this key")
	}

	delete(s.accounts.keys, fingerprint)

	return nil
}

// SetRole changes the role of a service account and of its keys at once.
func (s *Server) SetRole(name string, role Role) error {
	id := accountID(name)

	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()

	if _, ok := s.accounts.roles[id]; !ok {
		return fmt.Errorf("service account %q does not exist", id)
	}

	if role.rank() < 0 {
		return fmt.Errorf("unknown role %q", role)
	}

	s.accounts.roles[id] = role

	for fingerprint, key := range s.accounts.keys {
		if key.account == id {
			key.role = role
			s.accounts.keys[fingerprint] = key
		}
	}

	return nil
}

func accountID(name string) string { return access.ParseServiceAccountFromName(name).FullID() }

func (a *accounts) create(name string, role Role, armored string) (string, error) {
	if role.rank() < 0 {
		return "", fmt.Errorf("unknown role to parse: %q", role)
	}

	id := accountID(name)

	a.mu.Lock()
	_, exists := a.roles[id]

	if !exists {
		a.roles[id] = role
	}
	a.mu.Unlock()

	if exists {
		return "", fmt.Errorf("service account %q already exists", id)
	}

	return a.addKey(name, armored)
}

func (a *accounts) addKey(name, armored string) (string, error) {
	parsed, err := pgpcrypto.NewKeyFromArmored(armored)
	if err != nil {
		return "", fmt.Errorf("parse public key: %w", err)
	}

	key, err := pgp.NewKey(parsed)
	if err != nil {
		return "", fmt.Errorf("parse public key: %w", err)
	}

	if key.IsPrivate() {
		return "", errors.New("PGP key contains private key")
	}

	signature, _ := parsed.GetEntity().PrimaryIdentity(time.Time{}, &packet.Config{})
	if signature == nil || signature.KeyLifetimeSecs == nil {
		return "", errors.New("PGP key has no expiration")
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	id := accountID(name)

	role, ok := a.roles[id]
	if !ok {
		return "", fmt.Errorf("service account %q does not exist", id)
	}

	a.keys[key.Fingerprint()] = publicKey{
		key:        key,
		account:    id,
		role:       role,
		expiration: parsed.GetEntity().PrimaryKey.CreationTime.Add(time.Duration(*signature.KeyLifetimeSecs) * time.Second),
	}

	return key.Fingerprint(), nil
}

// lookup returns the key with the fingerprint if it exists and has not expired.
func (a *accounts) lookup(fingerprint string) (publicKey, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	key, ok := a.keys[fingerprint]

	return key, ok && time.Now().Before(key.expiration)
}

// remove removes a service account and its keys.
func (a *accounts) remove(name string) bool {
	id := accountID(name)

	a.mu.Lock()
	defer a.mu.Unlock()

	if _, ok := a.roles[id]; !ok {
		return false
	}

	delete(a.roles, id)

	for fingerprint, key := range a.keys {
		if key.account == id {
			delete(a.keys, fingerprint)
		}
	}

	return true
}

// generateKey returns a key pair that is valid for the given time from now, or, for a negative lifetime, was valid for
// one hour that ended that long ago.
func generateKey(name string, lifetime time.Duration) (*pgp.Key, error) {
	created := time.Now()

	if lifetime < 0 {
		created = created.Add(lifetime - time.Hour)
		lifetime = time.Hour
	}

	seconds := uint32(lifetime / time.Second)
	if seconds == 0 {
		return nil, errors.New("a key lives at least one second")
	}

	config := &packet.Config{
		Algorithm:       packet.PubKeyAlgoEdDSA,
		KeyLifetimeSecs: seconds,
		SigLifetimeSecs: seconds,
		Time:            func() time.Time { return created },
	}

	// Omni uses the account's address as the name of the key's owner.
	entity, err := openpgp.NewEntity(strings.ToLower(accountID(name)), "", accountID(name), config)
	if err != nil {
		return nil, err
	}

	key, err := pgpcrypto.NewKeyFromEntity(entity)
	if err != nil {
		return nil, err
	}

	return pgp.NewKey(key)
}
