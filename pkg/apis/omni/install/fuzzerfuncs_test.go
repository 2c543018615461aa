package install

import (
	"encoding/json"
	"fmt"
	"strings"

	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// fuzzerFuncs returns the functions for fields that plain random content does not fill correctly: free-form blocks, sizes
// that are numbers or words, and fields with defaults. Decoding sets the defaults, so an unset field with a default
// would not be unset after a round trip.
func fuzzerFuncs(runtimeserializer.CodecFactory) []any {
	return append(valueFuncs(), defaultFuncs()...)
}

func valueFuncs() []any {
	return []any{
		func(f *v1alpha1.FreeForm, c randfill.Continue) { f.Raw = randomObject(c, 3) },
		func(size *intstr.IntOrString, c randfill.Continue) {
			if c.Bool() {
				*size = intstr.FromString(c.String(8))
			} else {
				*size = intstr.FromInt32(c.Int31())
			}
		},
	}
}

func defaultFuncs() []any {
	return []any{
		func(s *v1alpha1.OmniConnectionSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setDefault(&s.Auth.ServiceAccountSecretRef.Key, v1alpha1.DefaultServiceAccountKey)
		},
		func(s *v1alpha1.OmniClusterSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setDefault(&s.ChangePolicy, v1alpha1.ChangePolicyApply)
			setDefault(&s.SyncInterval, v1alpha1.DefaultSyncInterval)
		},
		func(s *v1alpha1.OmniKubeconfigExportSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setDefault(&s.TargetSecretRef.Key, v1alpha1.DefaultKubeconfigKey)
			setDefault(&s.Format, v1alpha1.FormatKubeconfig)
			setDefault(&s.DeletionPolicy, v1alpha1.DeletionDelete)
		},
		func(s *v1alpha1.OmniSecretSyncSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setDefault(&s.KubeconfigSecretRef.Key, v1alpha1.DefaultKubeconfigKey)
			setDefault(&s.DeletionPolicy, v1alpha1.DeletionDelete)
		},
		fillHelmRelease,
		func(s *v1alpha1.OmniRolloutPolicySpec, c randfill.Continue) {
			c.FillNoCustom(s)
			setDefault(&s.ArrivalTime, v1alpha1.DefaultArrivalTime)
			setDefault(&s.ProgressDeadline, v1alpha1.DefaultProgressDeadline)
		},
		func(v *v1alpha1.HelmVerify, c randfill.Continue) {
			c.FillNoCustom(v)
			setDefault(&v.KeyringSecretRef.Key, v1alpha1.DefaultKeyringKey)
		},
	}
}

func fillHelmRelease(s *v1alpha1.OmniHelmReleaseSpec, c randfill.Continue) {
	c.FillNoCustom(s)
	setDefault(&s.KubeconfigSecretRef.Key, v1alpha1.DefaultKubeconfigKey)
	setDefault(&s.Namespace, v1alpha1.DefaultHelmNamespace)
	setDefault(&s.Timeout, v1alpha1.DefaultHelmTimeout)
	setDefault(&s.Interval, v1alpha1.DefaultHelmInterval)
	setDefault(&s.DriftDetection.Mode, v1alpha1.DriftDisabled)
	setDefault(&s.DeletionPolicy, v1alpha1.ReleaseUninstall)

	if s.MaxHistory == nil {
		s.MaxHistory = new(v1alpha1.DefaultHelmMaxHistory)
	}

	if s.Retries == nil {
		s.Retries = new(v1alpha1.DefaultHelmRetries)
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// randomObject writes a compact JSON object. No 64-bit float can represent its numbers as they are written.
func randomObject(c randfill.Continue, depth int) []byte {
	members := make([]string, 0, 4)

	for i := range c.Intn(4) {
		// The number makes the keys unique.
		key := fmt.Sprintf("%d%s", i, c.String(6))
		members = append(members, quote(key)+":"+randomValue(c, depth))
	}

	return []byte("{" + strings.Join(members, ",") + "}")
}

func randomValue(c randfill.Continue, depth int) string {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}

	switch c.Intn(kinds) {
	case 0:
		return "null"
	case 1:
		return fmt.Sprint(c.Bool())
	case 2:
		return quote(c.String(12))
	case 3:
		return fmt.Sprint(c.Int63())
	case 4:
		return fmt.Sprintf("-%d%020d", 1+c.Intn(9), c.Uint64())
	case 5:
		return fmt.Sprintf("%d.%d0", c.Intn(100), c.Intn(1000))
	case 6:
		return fmt.Sprintf("%de%d", 1+c.Intn(9), c.Intn(40))
	case 7:
		return "[" + randomValue(c, depth-1) + "," + randomValue(c, depth-1) + "]"
	default:
		return string(randomObject(c, depth-1))
	}
}

func quote(text string) string {
	// A string can always be encoded; invalid UTF-8 in it is replaced.
	encoded, err := json.Marshal(text)
	if err != nil {
		return `""`
	}

	return string(encoded)
}
