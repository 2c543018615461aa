package exportcommand

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"omni.texashpc.com/omni-cluster-operator/pkg/export"
)

const exportDescription = `export writes the manifests of live Omni clusters: OmniCluster with adopt: true, OmniControlPlane,
OmniWorkers, OmniMachine, and ConfigMaps for contents that have to stay byte for byte. Applied as they are, they
change nothing in Omni (changePolicy: Observe), and deleting them destroys nothing there (deletePolicy.orphan: true).
Comments in the files say what to change to take the clusters over. That changes nothing in Omni but the owner's
mark; a warning names what would change all the same. The export writes nothing to Omni.

The clusters use the OmniConnection that --connection names. It is written with --with-connection only, without its
Secret: applied to a namespace that has one of that name, it would replace the key of every cluster there.

The service account key comes from --service-account-key-file or, without it, from the environment variable
` + keyEnvironment + `. Warnings go to standard error.`

const (
	keyEnvironment    = "OMNI_SERVICE_ACCOUNT_KEY"
	defaultConnection = "omni"
	defaultSecret     = "omni-service-account"
	// maxKeyFile is the most that is read of a key file, in bytes.
	maxKeyFile = 1 << 20
)

// Options are the flags of the command export.
type Options struct {
	// Endpoint is the URL of Omni.
	Endpoint string
	// Clusters are names in Omni; All is every cluster.
	Clusters []string
	All      bool
	// Namespace, Connection and Secret are names in the objects that are written.
	Namespace, Connection, Secret string
	// WithConnection writes the OmniConnection, too.
	WithConnection bool
	// KeyFile holds the service account key. Empty: the key is in the environment.
	KeyFile string
	// CAFile holds PEM certificates. Empty: the system's roots.
	CAFile string
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// Output is the format on standard output; OutputDir takes files instead.
	Output, OutputDir string
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Endpoint, "endpoint", "", "URL of the Omni API, such as https://omni.example.com.")
	flags.StringArrayVar(&o.Clusters, "cluster", nil, "Name of a cluster in Omni. May be given several times.")
	flags.BoolVar(&o.All, "all", false, "Export every cluster.")
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "Namespace of the objects. Default: none is written.")
	flags.StringVar(&o.Connection, "connection", defaultConnection, "Name of the OmniConnection that the clusters use.")
	flags.BoolVar(&o.WithConnection, "with-connection", false, "Write the OmniConnection, too. Do not apply it to a namespace that has one of that name.")
	flags.StringVar(&o.Secret, "secret", "", "With --with-connection: name of the Secret with the key that the OmniConnection refers to; it is not exported. Default: "+defaultSecret+".")
	flags.StringVar(&o.KeyFile, "service-account-key-file", "", "File that holds the service account key. Default: "+keyEnvironment+" of the environment.")
	flags.StringVar(&o.CAFile, "ca-file", "", "File with the PEM certificates that sign Omni's certificate. Default: the system's roots.")
	flags.BoolVar(&o.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false, "Accept any certificate of Omni. Use --ca-file instead wherever you can.")
	flags.StringVarP(&o.Output, "output", "o", "yaml", "Format on standard output: yaml.")
	flags.StringVar(&o.OutputDir, "output-dir", "", "Write one file per cluster, and one for the connection if it is asked for, into this directory instead.")
}

// Validate returns all problems of the flags at once.
func (o *Options) Validate() error {
	var problems []error

	if o.Endpoint == "" {
		problems = append(problems, errors.New("--endpoint is required: the URL of the Omni API, such as https://omni.example.com"))
	}

	if (len(o.Clusters) > 0) == o.All {
		problems = append(problems, errors.New("one of --cluster NAME (any number of times) and --all is required"))
	}

	if o.CAFile != "" && o.InsecureSkipTLSVerify {
		problems = append(problems, errors.New("--ca-file and --insecure-skip-tls-verify exclude each other"))
	}

	if o.Secret != "" && !o.WithConnection {
		problems = append(problems, errors.New("--secret is for the OmniConnection, which is written with --with-connection only: leave one out, or add the other"))
	}

	if o.Output != "yaml" {
		problems = append(problems, fmt.Errorf("--output: %q is not known, only yaml is", o.Output))
	}

	for _, name := range []struct {
		flag, value string
		check       func(string) []string
		optional    bool
	}{
		{"--namespace", o.Namespace, validation.IsDNS1123Label, true},
		{"--connection", o.Connection, validation.IsDNS1123Subdomain, false},
		{"--secret", o.Secret, validation.IsDNS1123Subdomain, true},
	} {
		if wrong := name.check(name.value); len(wrong) > 0 && (name.value != "" || !name.optional) {
			problems = append(problems, fmt.Errorf("%s: %q is not a name: %s", name.flag, name.value, wrong[0]))
		}
	}

	return errors.Join(problems...)
}

// key reads the key, and returns where it came from.
func (o *Options) key() ([]byte, string, error) {
	if o.KeyFile == "" {
		value := os.Getenv(keyEnvironment)
		if value == "" {
			return nil, "", errors.New("--service-account-key-file (or " + keyEnvironment + " of the environment) is required: the key that `omnictl serviceaccount create` printed")
		}

		return []byte(value), keyEnvironment, nil
	}

	file, err := os.Open(o.KeyFile)
	if err != nil {
		return nil, "", fmt.Errorf("--service-account-key-file: %w", err)
	}
	defer file.Close() // only read

	value, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return nil, "", fmt.Errorf("--service-account-key-file: %w", err)
	}

	return value, "--service-account-key-file", nil
}

// complete reads the files that the flags name.
func (o *Options) complete() (export.Options, error) {
	key, source, err := o.key()
	if err != nil {
		return export.Options{}, err
	}

	options := export.Options{
		Endpoint: o.Endpoint, Key: key, KeySource: source, InsecureSkipTLSVerify: o.InsecureSkipTLSVerify,
		Clusters: o.Clusters, All: o.All, Namespace: o.Namespace, Connection: o.Connection, WithConnection: o.WithConnection,
		Secret: cmp.Or(o.Secret, defaultSecret),
	}

	if o.CAFile != "" {
		if options.CABundle, err = os.ReadFile(o.CAFile); err != nil {
			return export.Options{}, fmt.Errorf("--ca-file: %w", err)
		}
	}

	return options, nil
}

// New makes the export subcommand.
func New(ctx context.Context) *cobra.Command {
	options := &Options{}

	command := &cobra.Command{
		Use:           "export --endpoint URL (--cluster NAME ... | --all)",
		Short:         "Write the manifests of live Omni clusters",
		Long:          exportDescription,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		// This hook replaces the root's, which starts logging: this command prints its errors as lines of text for
		// people, not as log entries.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(command *cobra.Command, _ []string) error {
			return runExport(ctx, options, command.OutOrStdout(), command.ErrOrStderr())
		},
	}

	options.AddFlags(command.Flags())

	return command
}

func runExport(ctx context.Context, options *Options, stdout, stderr io.Writer) error {
	if err := options.Validate(); err != nil {
		return err
	}

	wanted, err := options.complete()
	if err != nil {
		return err
	}

	result, err := export.Run(ctx, wanted)
	if err != nil {
		return err
	}

	for _, warning := range result.Warnings {
		fmt.Fprintln(stderr, "warning:", warning)
	}

	if options.OutputDir != "" {
		return writeFiles(options.OutputDir, result, stderr)
	}

	var texts [][]byte

	for _, file := range result.Files() {
		texts = append(texts, file.Text)
	}

	if _, err := stdout.Write(bytes.Join(texts, []byte("---\n"))); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}

	return nil
}
