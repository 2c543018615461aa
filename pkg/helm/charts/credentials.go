package charts

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/dialguard"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// Keys of the Secrets that hold credentials.
const (
	usernameKey     = "username"
	passwordKey     = "password"
	dockerConfigKey = ".dockerconfigjson"
)

// Credentials are a name and a password. They must not be printed.
type Credentials struct {
	Username, Password string
}

// empty reports whether there is nothing to send.
func (c Credentials) empty() bool { return c.Username == "" && c.Password == "" }

// removeFrom takes the credentials out of what an error says about a source: whoever got
// them may send them back, as in the address of a redirect.
func (c Credentials) removeFrom(err error) error {
	var known *Error
	if c.empty() || !errors.As(err, &known) {
		return err
	}

	secrets := redact.Of(c.Password, c.Username+":"+c.Password)

	return &Error{Reason: known.Reason, Message: secrets.Remove(known.Message)}
}

// String keeps credentials out of texts.
func (c Credentials) String() string { return "[credentials]" }

// GoString keeps credentials out of texts.
func (c Credentials) GoString() string { return c.String() }

// dockerConfig is what we need of a Docker configuration.
type dockerConfig struct {
	Auths map[string]struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Auth     string `json:"auth"`
	} `json:"auths"`
}

// CredentialsFrom reads the credentials for a host from a Secret's data: username and password, or a
// Docker configuration under .dockerconfigjson. The error is an *Error that names what is missing.
func CredentialsFrom(ctx context.Context, data map[string][]byte, host string) (Credentials, error) {
	if text, ok := data[dockerConfigKey]; ok {
		return fromDockerConfig(ctx, text, host)
	}

	found := Credentials{Username: strings.TrimSpace(string(data[usernameKey])), Password: strings.TrimRight(string(data[passwordKey]), "\r\n")}
	if found.empty() {
		return Credentials{}, fail(Unauthorized, "the Secret has neither username and password nor %s", dockerConfigKey)
	}

	return found, nil
}

func fromDockerConfig(ctx context.Context, text []byte, host string) (Credentials, error) {
	var config dockerConfig
	if err := decodeJSON(ctx, text, maxSmallNodes, &config); err != nil {
		return Credentials{}, fail(Unauthorized, "%s of the Secret is not a Docker configuration", dockerConfigKey)
	}

	for _, name := range slices.SortedFunc(maps.Keys(config.Auths), plainFirst) {
		entry := config.Auths[name]
		if !sameRegistry(name, host) {
			continue
		}

		found := Credentials{Username: entry.Username, Password: entry.Password}

		if found.empty() {
			decoded, err := base64.StdEncoding.DecodeString(entry.Auth)
			if err != nil {
				return Credentials{}, fail(Unauthorized, "the entry for %s in %s of the Secret is not readable", host, dockerConfigKey)
			}

			found.Username, found.Password, _ = strings.Cut(string(decoded), ":")
		}

		return found, nil
	}

	return Credentials{}, fail(Unauthorized, "%s of the Secret has no entry for %s", dockerConfigKey, host)
}

// plainFirst orders the names of a Docker configuration: of several for one host, the shortest is the host itself.
func plainFirst(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// sameRegistry compares a name of a Docker configuration, which may be a URL with a path, with a host.
func sameRegistry(name, host string) bool {
	if _, rest, ok := strings.Cut(name, "://"); ok {
		name = rest
	}

	name, _, _ = strings.Cut(name, "/")

	return registryHost(strings.ToLower(name)) == registryHost(strings.ToLower(host))
}

// registryHost maps the names of Docker Hub to the host that serves it.
func registryHost(host string) string {
	switch host {
	case "docker.io", "index.docker.io":
		return "registry-1.docker.io"
	default:
		return host
	}
}

// Default limits.
const (
	// DefaultMaxIndexBytes is the largest index of a repository, in bytes.
	DefaultMaxIndexBytes = 48 << 20
	// DefaultMaxArchiveBytes is the largest packed chart, in bytes.
	DefaultMaxArchiveBytes = 16 << 20
	// DefaultMaxUnpackedBytes is the largest chart when it is unpacked, subcharts included, in bytes.
	DefaultMaxUnpackedBytes = 64 << 20
	// DefaultTimeout bounds one Resolve or Open.
	DefaultTimeout = 2 * time.Minute
	// DefaultParallelDownloads is how many large charts and indexes are downloaded at once.
	DefaultParallelDownloads = 4
)

// Options are what a Fetcher may be told. The zero value is usable.
type Options struct {
	// Guard decides to which addresses to connect.
	Guard dialguard.Guard
	// Renderers read indexes and provenance files; nil means renderers of its own.
	Renderers *render.Pool
	// MaxIndexBytes, MaxArchiveBytes and MaxUnpackedBytes are limits in bytes; 0 means the default.
	MaxIndexBytes, MaxArchiveBytes, MaxUnpackedBytes int64
	// Timeout bounds one Resolve or Open; 0 means the default.
	Timeout time.Duration
	// ParallelDownloads is how many charts and indexes of more than 1 MiB are downloaded at once. Half as
	// many downloads of any size are under way from one host. 0 means the default.
	ParallelDownloads int
	// Now replaces time.Now.
	Now func() time.Time
}
