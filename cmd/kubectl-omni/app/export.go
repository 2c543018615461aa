package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"omni.texashpc.com/omni-cluster-operator/pkg/disk"
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

// exportOptions are the flags of the command export.
type exportOptions struct {
	export.Options

	// keyFile holds the service account key. Empty: the key is in the environment.
	keyFile string
	// caFile holds PEM certificates. Empty: the system's roots.
	caFile string
	// output is the format on standard output; outputDir takes files instead.
	output, outputDir string
}

func (o *exportOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Endpoint, "endpoint", "", "URL of the Omni API, such as https://omni.example.com.")
	flags.StringArrayVar(&o.Clusters, "cluster", nil, "Name of a cluster in Omni. May be given several times.")
	flags.BoolVar(&o.All, "all", false, "Export every cluster.")
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "Namespace of the objects. Default: none is written.")
	flags.StringVar(&o.Connection, "connection", defaultConnection, "Name of the OmniConnection that the clusters use.")
	flags.BoolVar(&o.WithConnection, "with-connection", false, "Write the OmniConnection, too. Do not apply it to a namespace that has one of that name.")
	flags.StringVar(&o.Secret, "secret", "", "With --with-connection: name of the Secret with the key that the OmniConnection refers to; it is not exported. Default: "+defaultSecret+".")
	flags.StringVar(&o.keyFile, "service-account-key-file", "", "File that holds the service account key. Default: "+keyEnvironment+" of the environment.")
	flags.StringVar(&o.caFile, "ca-file", "", "File with the PEM certificates that sign Omni's certificate. Default: the system's roots.")
	flags.BoolVar(&o.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false, "Accept any certificate of Omni. Use --ca-file instead wherever you can.")
	flags.StringVarP(&o.output, "output", "o", "yaml", "Format on standard output: yaml.")
	flags.StringVar(&o.outputDir, "output-dir", "", "Write one file per cluster, and one for the connection if it is asked for, into this directory instead.")
}

// validate returns all problems of the flags at once.
func (o *exportOptions) validate() error {
	var problems []error

	if o.Endpoint == "" {
		problems = append(problems, errors.New("--endpoint is required: the URL of the Omni API, such as https://omni.example.com"))
	}

	if (len(o.Clusters) > 0) == o.All {
		problems = append(problems, errors.New("one of --cluster NAME (any number of times) and --all is required"))
	}

	if o.caFile != "" && o.InsecureSkipTLSVerify {
		problems = append(problems, errors.New("--ca-file and --insecure-skip-tls-verify exclude each other"))
	}

	if o.Secret != "" && !o.WithConnection {
		problems = append(problems, errors.New("--secret is for the OmniConnection, which is written with --with-connection only: leave one out, or add the other"))
	}

	if o.output != "yaml" {
		problems = append(problems, fmt.Errorf("--output: %q is not known, only yaml is", o.output))
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
func (o *exportOptions) key() ([]byte, string, error) {
	if o.keyFile == "" {
		value := os.Getenv(keyEnvironment)
		if value == "" {
			return nil, "", errors.New("--service-account-key-file (or " + keyEnvironment + " of the environment) is required: the key that `omnictl serviceaccount create` printed")
		}

		return []byte(value), keyEnvironment, nil
	}

	file, err := os.Open(o.keyFile)
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
func (o *exportOptions) complete() (export.Options, error) {
	completed := o.Options
	completed.Secret = cmp.Or(o.Secret, defaultSecret)

	var err error
	if completed.Key, completed.KeySource, err = o.key(); err != nil {
		return export.Options{}, err
	}

	if o.caFile != "" {
		if completed.CABundle, err = os.ReadFile(o.caFile); err != nil {
			return export.Options{}, fmt.Errorf("--ca-file: %w", err)
		}
	}

	return completed, nil
}

// exportCommand reaches Omni only, with flags of its own.
func (t *tool) exportCommand() *cobra.Command {
	options := &exportOptions{}

	command := &cobra.Command{
		Use:     "export --endpoint URL (--cluster NAME ... | --all)",
		Short:   "Write the manifests of live Omni clusters",
		Long:    exportDescription,
		GroupID: groupMove,
		Args:    cobra.NoArgs,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return refuseFlags(command, func(string) bool { return true },
				"export does not use --%s, it asks the Omni of --endpoint and no management cluster: leave the flag out")
		},
		RunE: func(command *cobra.Command, _ []string) error { return t.export(command.Context(), options) },
	}

	options.addFlags(command.Flags())

	return command
}

func (t *tool) export(ctx context.Context, options *exportOptions) error {
	if err := options.validate(); err != nil {
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
		fmt.Fprintln(t.ErrOut, "warning:", warning)
	}

	if options.outputDir != "" {
		return writeFiles(options.outputDir, result, t.ErrOut)
	}

	var texts [][]byte

	for _, file := range result.Files() {
		texts = append(texts, file.Text)
	}

	if _, err := t.Out.Write(bytes.Join(texts, []byte("---\n"))); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}

	return nil
}

// writeFiles writes one file per cluster, and one for the connection if there is one. Only the user may read them, because their
// content may be secret. It never overwrites a file with different content: somebody may have edited it.
func writeFiles(dir string, result *export.Result, stderr io.Writer) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("--output-dir: %w", err)
	}

	var problems []error

	// Check all files before the first one is written.
	for _, file := range result.Files() {
		path := pathOf(dir, file)
		there, err := os.ReadFile(path)

		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, fmt.Errorf("--output-dir: %w", err))
		case !bytes.Equal(there, file.Text):
			problems = append(problems, fmt.Errorf("--output-dir: %s is there with another content: remove it, or choose another directory", path))
		}
	}

	if err := errors.Join(problems...); err != nil {
		return err
	}

	for _, file := range result.Files() {
		path := pathOf(dir, file)
		if err := disk.WriteFile(path, file.Text); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}

		fmt.Fprintln(stderr, "wrote", path)
	}

	return nil
}

func pathOf(dir string, file export.File) string { return filepath.Join(dir, file.Name+".yaml") }
