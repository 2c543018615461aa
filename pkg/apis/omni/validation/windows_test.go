package validation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func validWindow() *v1alpha1.MaintenanceWindow {
	return &v1alpha1.MaintenanceWindow{Days: []v1alpha1.Weekday{"Sat"}, Start: "02:00", Duration: "4h", TimeZone: "Europe/Berlin"}
}

func checkWindow(one *v1alpha1.MaintenanceWindow) field.ErrorList {
	return validateWindow(one, field.NewPath("w"))
}

func TestValidateWindow(t *testing.T) {
	start := func(text string) func(*v1alpha1.MaintenanceWindow) {
		return func(w *v1alpha1.MaintenanceWindow) { w.Start = text }
	}
	zone := func(name string) func(*v1alpha1.MaintenanceWindow) {
		return func(w *v1alpha1.MaintenanceWindow) { w.TimeZone = name }
	}
	duration := func(text v1alpha1.Duration) func(*v1alpha1.MaintenanceWindow) {
		return func(w *v1alpha1.MaintenanceWindow) { w.Duration = text }
	}

	const (
		wrongStart = "w.start: must be a time of day with two digits each, such as 02:00"
		useOther   = `use "UTC", or a name of the IANA database with a slash, such as "Europe/Berlin"`
	)

	rows := []row[v1alpha1.MaintenanceWindow]{
		{"valid", start("02:00"), nil},
		{"midnight", start("00:00"), nil},
		{"the last minute", start("23:59"), nil},
		{"a quarter of an hour", duration("15m"), nil},
		{"a day", duration("24h"), nil},
		{"UTC", zone("UTC"), nil},
		{"three parts", zone("America/Argentina/Ushuaia"), nil},
		{"every day", func(w *v1alpha1.MaintenanceWindow) {
			w.Days = []v1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
		}, nil},
		{"everything missing", func(w *v1alpha1.MaintenanceWindow) { *w = v1alpha1.MaintenanceWindow{} }, []string{
			"w.days: name at least one day, such as Sat", wrongStart,
			"w.duration: say how long the window is open, such as 4h", "w.timeZone: name the time zone, such as Europe/Berlin, or UTC",
		}},
		{"too short", duration("14m59s"), []string{"w.duration: must be at least 15m"}},
		{"too long", duration("24h1s"), []string{"w.duration: must be at most 24h"}},
		{"no duration", duration("4"), []string{"w.duration: must be a duration such as 30s, 10m or 24h"}},
		{"a zone that moves on its own", zone("CET"), []string{`w.timeZone: "CET" is not a time zone that says which rules it follows: ` + useOther}},
		{"a zone the wrong way round", zone("Etc/GMT+1"), []string{`w.timeZone: "Etc/GMT+1" is not a time zone that says which rules it follows: ` + useOther}},
		{"our own zone", zone("Local"), []string{`w.timeZone: "Local" is not a time zone that says which rules it follows: ` + useOther}},
		{"an unknown zone", zone("Europe/Atlantis"), []string{`w.timeZone: there is no time zone "Europe/Atlantis": ` + useOther}},
		{"a path", zone("../etc/passwd"), []string{`w.timeZone: there is no time zone "../etc/passwd": ` + useOther}},
	}
	for _, text := range []string{"24:00", "2:00", "02:60", "0200", "02:00:00", " 02:00", "02:00\n"} {
		rows = append(rows, row[v1alpha1.MaintenanceWindow]{"start " + text, start(text), []string{wrongStart}})
	}

	checkRemedies(t, validWindow, checkWindow, rows)

	checkRules(t, validWindow, checkWindow, []row[v1alpha1.MaintenanceWindow]{
		{"bad days", func(w *v1alpha1.MaintenanceWindow) { w.Days = []v1alpha1.Weekday{"Sat", "sun", "", "Sat"} },
			[]string{"w.days[1]: Unsupported value", "w.days[2]: Unsupported value", "w.days[3]: Duplicate value"}},
	})
}

func TestFourteenWindows(t *testing.T) {
	windows := func(number int) func(*v1alpha1.OmniRolloutPolicy) {
		return firstStage(func(s *v1alpha1.RolloutStage) {
			for range number {
				s.Windows = append(s.Windows, *validWindow())
			}
		})
	}

	checkRules(t, validPolicy, ValidateOmniRolloutPolicy, []row[v1alpha1.OmniRolloutPolicy]{
		{"14", windows(14), nil},
		{"15", windows(15), []string{"spec.stages[0].windows: Too many"}},
		{"a bad one", firstStage(func(s *v1alpha1.RolloutStage) {
			s.Windows = []v1alpha1.MaintenanceWindow{*validWindow(), {Days: []v1alpha1.Weekday{"Mon"}, Start: "1", Duration: "1h", TimeZone: "UTC"}}
		}),
			[]string{"spec.stages[0].windows[1].start: Invalid value"}},
	})
}

// TestRolloutAnnotations: what an OmniCluster says to the policies.
func TestRolloutAnnotations(t *testing.T) {
	const (
		zone     = "omni.texashpc.com/time-zone"
		override = "omni.texashpc.com/rollout-override"

		needsHash   = "metadata.annotations[" + override + "]: must begin with the status.rollout.hash of this OmniCluster, then a space and a reason"
		needsReason = "metadata.annotations[" + override + "]: give a reason of at least 10 characters behind the hash"
	)

	hash := strings.Repeat("0a", 32)

	for name, test := range map[string]struct {
		annotations, old map[string]string
		want             []string
	}{
		"none":                            {},
		"valid":                           {annotations: map[string]string{zone: "Asia/Tokyo", override: hash + " CVE-2026-1"}},
		"ten letters of two bytes":        {annotations: map[string]string{override: hash + " ääääääääää"}},
		"nine letters of two bytes":       {annotations: map[string]string{override: hash + " äääääääää"}, want: []string{needsReason}},
		"nine letters and blanks":         {annotations: map[string]string{override: hash + "  123456789  "}, want: []string{needsReason}},
		"no reason":                       {annotations: map[string]string{override: hash}, want: []string{needsReason}},
		"no hash":                         {annotations: map[string]string{override: "because I want to"}, want: []string{needsHash}},
		"half a hash":                     {annotations: map[string]string{override: hash[:32] + " CVE-2026-1"}, want: []string{needsHash}},
		"a hash in capitals":              {annotations: map[string]string{override: strings.ToUpper(hash) + " CVE-2026-1"}, want: []string{needsHash}},
		"empty, which is as good as none": {annotations: map[string]string{override: "", zone: ""}},
		"a long reason":                   {annotations: map[string]string{override: hash + " " + strings.Repeat("x", 959)}},
		"too long a reason":               {annotations: map[string]string{override: hash + " " + strings.Repeat("x", 960)}, want: []string{"metadata.annotations[" + override + "]: may not be more than 1024 bytes"}},
		"a bad zone": {annotations: map[string]string{zone: "EST"}, want: []string{
			`metadata.annotations[` + zone + `]: "EST" is not a time zone that says which rules it follows: use "UTC", or a name of the IANA database with a slash, such as "Europe/Berlin"`,
		}},
		"stored before":       {annotations: map[string]string{zone: "EST", override: "x"}, old: map[string]string{zone: "EST", override: "x"}},
		"one of them changed": {annotations: map[string]string{zone: "EST", override: "y"}, old: map[string]string{zone: "EST", override: "x"}, want: []string{needsHash}},
	} {
		t.Run(name, func(t *testing.T) {
			checkRemedies(t, func() *struct{} { return nil }, func(*struct{}) field.ErrorList {
				return validateRolloutAnnotations(test.annotations, test.old)
			}, []row[struct{}]{{"", func(*struct{}) {}, test.want}})
		})
	}
}

// An override comes with an update, when something waits: its hash and its reason are checked there, too.
func TestRolloutAnnotationsOfAnUpdate(t *testing.T) {
	const override = "omni.texashpc.com/rollout-override"

	for value, valid := range map[string]bool{strings.Repeat("0a", 32) + " CVE-2026-1": true, "because I want to": false, "": true} {
		old, changed := validCluster(), validCluster()
		old.ResourceVersion, changed.ResourceVersion = "1", "1"
		changed.Annotations = map[string]string{override: value}

		if errs := ValidateOmniClusterUpdate(changed, old); (len(errs) == 0) != valid {
			t.Errorf("%q: %v", value, errs)
		}

		if errs := ValidateOmniCluster(changed); (len(errs) == 0) != valid {
			t.Errorf("%q on a new cluster: %v", value, errs)
		}
	}
}
