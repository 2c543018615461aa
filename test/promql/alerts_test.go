package promql

import (
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

// alert is one rule of the chart's alerts.yaml.
type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         model.Duration    `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) map[string]alert {
	t.Helper()

	var file struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}

	decoder := yaml.NewDecoder(strings.NewReader(read(t, chart, "alerts.yaml")))
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}

	found := map[string]alert{}

	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}

	if len(found) == 0 {
		t.Fatal("there are no alerts")
	}

	return found
}

// firing is an alert that fires, with its annotations filled in.
type firing struct {
	labels, annotations labels.Labels
}

// at evaluates an alert every minute until then, as Prometheus does, and returns what fires at the end.
func (p *prometheus) at(of alert, end time.Duration) []firing {
	p.t.Helper()

	var last []firing
	p.each(of, end, func(_ time.Duration, fires []firing) { last = fires })

	return last
}

// each evaluates an alert every minute until then, as Prometheus does, and tells what fires each time.
func (p *prometheus) each(of alert, end time.Duration, tell func(at time.Duration, fires []firing)) {
	p.t.Helper()

	expression, err := parser.NewParser(parser.Options{}).ParseExpr(of.Expr)
	if err != nil {
		p.t.Fatal(err)
	}

	rule := rules.NewAlertingRule(of.Alert, expression, time.Duration(of.For), 0, labels.FromMap(of.Labels), labels.FromMap(of.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))

	for at := time.Duration(0); at <= end; at += time.Minute {
		if _, err := rule.Eval(p.t.Context(), 0, time.Unix(0, 0).Add(at), rules.EngineQueryFunc(p.engine, p.data), &url.URL{}, 0); err != nil {
			p.t.Fatal(err)
		}

		var fires []firing

		for _, active := range rule.ActiveAlerts() {
			if active.State == rules.StateFiring {
				fires = append(fires, firing{active.Labels, active.Annotations})
			}
		}

		tell(at, fires)
	}
}

// Each alert fires when it should, says of what, and is silent a moment before, with what is just well enough, and while
// everything works.
func TestAlerts(t *testing.T) {
	cases := map[string]struct {
		bad, good     string        // series, from the epoch on, a minute apart
		after         time.Duration // when it fires
		says          string        // in its summary
		alwaysTooLate bool          // it fires at once: there is no moment before
	}{
		"OmniObjectNotReady": {
			bad:   `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="False",reason="NotRunning",suspended="false"} 1x200`,
			good:  `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="False",reason="NotRunning",suspended="true"} 1x200`,
			after: 30 * time.Minute, says: "OmniCluster team/demo is not Ready for 30 minutes: NotRunning",
		},
		"OmniApprovalWaits": {
			bad:   `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="False",reason="AwaitingApproval",suspended="false"} 1x2000`,
			good:  `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="False",reason="AwaitingApproval",suspended="true"} 1x2000`,
			after: 24 * time.Hour, says: "Changes of OmniCluster team/demo have waited for an approval",
		},
		"OmniUpgradeTakesLong": {
			bad:   `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="False",reason="Upgrading",suspended="false"} 1x400`,
			good:  `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="False",reason="Upgrading",suspended="true"} 1x400`,
			after: 3 * time.Hour, says: "The upgrade of OmniCluster team/demo takes longer than 3 hours",
		},
		"OmniSuspended": {
			bad:   `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="True",reason="Running",suspended="true"} 1x4500`,
			good:  `omni_resource_info{kind="OmniCluster",namespace="team",name="demo",ready="True",reason="Running",suspended="false"} 1x4500`,
			after: 72 * time.Hour, says: "OmniCluster team/demo has been suspended or on hold for 3 days",
		},
		"OmniKeyExpires": {
			bad:   `omni_service_account_renewal_timestamp_seconds{namespace="team",name="omni"} -1x200`,
			good:  `omni_service_account_renewal_timestamp_seconds{namespace="team",name="omni"} 95200x200`,
			after: 0, says: "OmniConnection team/omni expires", alwaysTooLate: true,
		},
		"OmniUnreachable": {
			bad: `omni_api_requests_total{connection="team/omni",code="Unavailable",method="/cosi.resource.State/Get"} 0+2x200`,
			good: `omni_api_requests_total{connection="team/omni",code="NotFound",method="/cosi.resource.State/Get"} 0+2x200` + "\n" +
				`omni_api_requests_total{connection="team/omni",code="Unavailable",method="/cosi.resource.State/Watch"} 0+17x200`,
			after: 16 * time.Minute, says: "team/omni fail",
		},
		// A release with the default retries: four attempts of five minutes, with pauses between them.
		"OmniHelmActionsFail": {
			bad:   `omni_helm_actions_total{action="upgrade",result="failure"} 0x3 1x4 2x5 3x5 4x200`,
			good:  `omni_helm_actions_total{action="upgrade",result="failure"} 0x3 1x4 2x200`,
			after: 14 * time.Minute, says: "(upgrade) fail",
		},
		"OmniHelmReleaseDrifted": {
			bad:   `omni_helm_drifted{namespace="team",name="app"} 1x200`,
			good:  `omni_helm_drifted{namespace="team",name="app"} 1x9 0x9 1x9 0x9 1x9 0x200`,
			after: 30 * time.Minute, says: "OmniHelmRelease team/app differ from its release",
		},
		"OmniKubeconfigExpires": {
			bad:   `omni_kubeconfig_renewal_timestamp_seconds{namespace="team",name="app"} 0x200`,
			good:  `omni_kubeconfig_renewal_timestamp_seconds{namespace="team",name="app"} 10000x200`,
			after: 16 * time.Minute, says: "OmniKubeconfigExport team/app was to be renewed",
		},
		"OmniRolloutStopped": {
			bad:   `omni_rollout_stopped{namespace="team",policy="production"} 1x200`,
			good:  `omni_rollout_stopped{namespace="team",policy="production"} 0x200`,
			after: 15 * time.Minute, says: "team/production has stopped",
		},
		"OmniRolloutWaits": {
			bad: `omni_rollout_oldest_held_timestamp_seconds{namespace="team",policy="production",stage="prod"} -1209601x200`,
			// Nine days, and since three weeks in a freeze of ten days more.
			good: `omni_rollout_oldest_held_timestamp_seconds{namespace="team",policy="production",stage="prod"} -777600x2000` + "\n" +
				`omni_rollout_oldest_held_timestamp_seconds{namespace="team",policy="production",stage="late"} -1814400x2000` + "\n" +
				`omni_rollout_next_open_timestamp_seconds{namespace="team",policy="production",stage="late"} 864000x2000`,
			after: 0, alwaysTooLate: true, says: "stage prod of OmniRolloutPolicy team/production",
		},
		"OmniAPIServerErrors": {
			bad: "apiserver_request_total{job=\"omni-apiserver\",code=\"500\",verb=\"GET\"} 0+6x200\n" +
				"apiserver_request_total{job=\"omni-apiserver\",code=\"200\",verb=\"GET\"} 0+94x200",
			good: "apiserver_request_total{job=\"omni-apiserver\",code=\"500\",verb=\"GET\"} 0+4x200\n" +
				"apiserver_request_total{job=\"omni-apiserver\",code=\"200\",verb=\"GET\"} 0+96x200",
			after: 11 * time.Minute, says: "More than 5 %",
		},
		"OmniAPIServerNotReady": {
			bad: "apiserver_request_total{job=\"omni-apiserver\",pod=\"omni-apiserver-0\",code=\"500\",subresource=\"/readyz\"} 0+6x200\n" +
				"apiserver_request_total{job=\"omni-apiserver\",pod=\"omni-apiserver-1\",code=\"200\",subresource=\"/readyz\"} 0+6x200",
			good: "apiserver_request_total{job=\"omni-apiserver\",pod=\"omni-apiserver-0\",code=\"500\",subresource=\"/readyz\"} 0+3x200\n" +
				"apiserver_request_total{job=\"omni-apiserver\",pod=\"omni-apiserver-0\",code=\"200\",subresource=\"/readyz\"} 0+3x200",
			after: 11 * time.Minute, says: "omni-apiserver-0 runs and is not ready",
		},
		"OmniServingCertificateExpires": {
			// Certificates of 90 days; the second one that is in order lives for two days.
			bad: "omni_apiserver_serving_certificate_not_before_timestamp_seconds{job=\"omni-apiserver\"} -7171201x200\n" +
				"omni_apiserver_serving_certificate_expiration_timestamp_seconds{job=\"omni-apiserver\"} 604799x200",
			good: "omni_apiserver_serving_certificate_not_before_timestamp_seconds{job=\"omni-apiserver\"} -7076000x200\n" +
				"omni_apiserver_serving_certificate_expiration_timestamp_seconds{job=\"omni-apiserver\"} 700000x200\n" +
				"omni_apiserver_serving_certificate_not_before_timestamp_seconds{job=\"omni-apiserver\",pod=\"other\"} 0x200\n" +
				"omni_apiserver_serving_certificate_expiration_timestamp_seconds{job=\"omni-apiserver\",pod=\"other\"} 172800x200",
			after: 0, says: "expires within 7 days", alwaysTooLate: true,
		},
		"OmniEtcdAlarm": {
			bad:   `omni_apiserver_etcd_alarm{job="omni-apiserver",alarm="NOSPACE"} 1x200`,
			good:  `omni_apiserver_etcd_alarm{job="omni-apiserver",alarm="NOSPACE"} 0x200`,
			after: 0, says: "NOSPACE", alwaysTooLate: true,
		},
		"OmniEtcdNearlyFull": {
			bad: "omni_apiserver_etcd_db_size_bytes{job=\"omni-apiserver\"} 91x200\n" +
				"omni_apiserver_etcd_quota_bytes{job=\"omni-apiserver\"} 100x200",
			good: "omni_apiserver_etcd_db_size_bytes{job=\"omni-apiserver\"} 90x200\n" +
				"omni_apiserver_etcd_quota_bytes{job=\"omni-apiserver\"} 100x200",
			after: 15 * time.Minute, says: "less than a tenth",
		},
		"OmniStorageLimitNear": {
			bad: `omni_apiserver_stored_objects{job="omni-apiserver",resource="omniclusters"} 500x200` + "\n" +
				`omni_apiserver_stored_objects{job="omni-apiserver",resource="omniworkers"} 401x200` + "\n" +
				`omni_apiserver_stored_limit{job="omni-apiserver",flag="--max-objects"} 1000x200`,
			good: `omni_apiserver_stored_objects{job="omni-apiserver",resource="omniclusters",pod="one"} 900x200` + "\n" +
				`omni_apiserver_stored_objects{job="omni-apiserver",resource="omniclusters",pod="two"} 900x200` + "\n" +
				`omni_apiserver_stored_limit{job="omni-apiserver",flag="--max-objects"} 1000x200` + "\n" +
				`omni_apiserver_stored_bytes{job="omni-apiserver",resource="omniclusters"} 1000x200` + "\n" +
				`omni_apiserver_stored_limit{job="omni-apiserver",flag="--max-bytes"} 0x200`,
			after: 15 * time.Minute, says: "more than nine tenths",
		},
		"OmniNamespaceLimitNear": {
			bad: `omni_apiserver_namespace_stored_bytes{job="omni-apiserver",in_namespace="team"} 91x200` + "\n" +
				`omni_apiserver_stored_limit{job="omni-apiserver",flag="--max-bytes-per-namespace"} 100x200`,
			good: `omni_apiserver_namespace_stored_objects{job="omni-apiserver",in_namespace="team"} 90x200` + "\n" +
				`omni_apiserver_stored_limit{job="omni-apiserver",flag="--max-objects-per-namespace"} 100x200`,
			after: 15 * time.Minute, says: "Namespace team has",
		},
		"OmniSnapshotsFail": {
			bad:   `omni_apiserver_etcd_snapshot_failures_total{job="omni-apiserver"} 0+1x200`,
			good:  `omni_apiserver_etcd_snapshot_failures_total{job="omni-apiserver"} 3x200`,
			after: 41 * time.Minute, says: "Snapshots",
		},
	}

	all := alerts(t)
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(cases)); !slices.Equal(got, want) {
		t.Fatalf("alerts %v, tested are %v", got, want)
	}

	healthy, lasts := recorded(t)
	exposed := healthy.exposed()

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			of := all[name]
			readsWhatIsExposed(t, of.Expr, exposed)

			for _, line := range strings.Split(test.bad+"\n"+test.good, "\n") {
				selector, _, _ := strings.Cut(line, "} ")
				readsWhatIsExposed(t, selector+"}", exposed)
			}

			bad := minutes(t, test.bad)

			got := bad.at(of, test.after)
			if len(got) != 1 {
				t.Fatalf("after %s: %v fires, want one", test.after, got)
			}

			if summary := got[0].annotations.Get("summary"); !strings.Contains(summary, test.says) {
				t.Errorf("it says %q, without %q", summary, test.says)
			}

			if got[0].labels.Get("severity") == "" || got[0].annotations.Get("description") == "" {
				t.Errorf("it lacks a severity or a description: %v", got[0])
			}

			if !test.alwaysTooLate {
				if early := minutes(t, test.bad).at(of, test.after-time.Minute); len(early) > 0 {
					t.Errorf("a minute before it fires already: %v", early)
				}
			}

			if got := minutes(t, test.good).at(of, max(3*time.Hour, test.after+time.Hour)); len(got) > 0 {
				t.Errorf("just well enough: %v", got)
			}

			if got := healthy.at(of, lasts); len(got) > 0 {
				t.Errorf("while everything works: %v", got)
			}
		})
	}

}

// A release that fails again and again has another reason while it is tried: that is no other alert.
func TestReasonsThatAlternate(t *testing.T) {
	series := `omni_resource_info{kind="OmniHelmRelease",namespace="team",name="app",ready="False",reason="Progressing",suspended="false"} 1x19 _x2 1x200
omni_resource_info{kind="OmniHelmRelease",namespace="team",name="app",ready="False",reason="ActionFailed",suspended="false"} _x19 1x2 _x200`

	fires := minutes(t, series).at(alerts(t)["OmniObjectNotReady"], 31*time.Minute)
	if len(fires) != 1 || !strings.Contains(fires[0].annotations.Get("summary"), "OmniHelmRelease team/app is not Ready for 30 minutes: Progressing") {
		t.Errorf("%+v", fires)
	}
}

// What goes on for as long as an alert wants is told, also if what is measured meanwhile changes its name or has pauses.
func TestAlertsThatLast(t *testing.T) {
	object := func(labels, values string) string {
		return `omni_resource_info{kind="OmniHelmRelease",namespace="team",name="app",suspended="false",` + labels + "} " + values
	}

	for name, test := range map[string]struct {
		alert, series string
		after         time.Duration
		quiet         bool // it never fires
	}{
		"a release that waits for 20 minutes and fails, again and again": {
			alert: "OmniObjectNotReady", after: 30 * time.Minute,
			series: object(`ready="False",reason="Progressing"`, "1x19 stale _x19 1x19 stale") + "\n" +
				object(`ready="False",reason="ActionFailed"`, "_x20 1x19 stale _x19 1x19"),
		},
		"an object that is not Ready, and then not known to be": {
			alert: "OmniObjectNotReady", after: 30 * time.Minute,
			series: object(`ready="False",reason="Error"`, "1x14 stale") + "\n" + object(`ready="Unknown",reason="Blocked"`, "_x15 1x100"),
		},
		"a document of a cluster that is on hold": {
			alert: "OmniObjectNotReady", quiet: true,
			series: object(`ready="False",reason="ClusterOnHold"`, "1x200"),
		},
		"a release whose cluster is suspended": {
			alert: "OmniObjectNotReady", quiet: true,
			series: object(`ready="False",reason="ClusterSuspended"`, "1x200"),
		},
		"a cluster that waits for an approval": {
			alert: "OmniObjectNotReady", quiet: true,
			series: object(`ready="False",reason="AwaitingApproval"`, "1x200"),
		},
		"a cluster that only observes": {
			alert: "OmniObjectNotReady", quiet: true,
			series: object(`ready="False",reason="Observing"`, "1x200"),
		},
		"a policy on hold, which is Ready": {
			alert: "OmniSuspended", after: 72 * time.Hour,
			series: `omni_resource_info{kind="OmniRolloutPolicy",namespace="team",name="all",ready="True",reason="PolicyOnHold",suspended="false"} 1x5000`,
		},
		"a suspended release, under two leaders": {
			alert: "OmniSuspended", after: 72 * time.Hour,
			series: `omni_resource_info{kind="OmniHelmRelease",namespace="team",name="app",ready="True",reason="Released",suspended="true",pod="one"} 1x2000 stale` + "\n" +
				`omni_resource_info{kind="OmniHelmRelease",namespace="team",name="app",ready="True",reason="Released",suspended="true",pod="two"} _x2001 1x3000`,
		},
		"an approval that is waited for under two leaders": {
			alert: "OmniApprovalWaits", after: 24 * time.Hour,
			series: object(`ready="False",reason="AwaitingApproval",pod="one"`, "1x600 stale") + "\n" +
				object(`ready="False",reason="AwaitingApproval",pod="two"`, "_x601 1x1000"),
		},
		"an object that is not Ready, under two leaders": {
			alert: "OmniObjectNotReady", after: 30 * time.Minute,
			series: object(`ready="False",reason="Error",pod="one"`, "1x14 stale") + "\n" + object(`ready="False",reason="Error",pod="two"`, "_x15 1x100"),
		},
		"an object that is Ready in between": {
			alert: "OmniObjectNotReady", quiet: true,
			series: object(`ready="False",reason="Progressing"`, "1x19 stale _x4 1x19 stale") + "\n" + object(`ready="True",reason="Succeeded"`, "_x20 1x4 stale"),
		},
		"a rollout that has stopped, under two leaders": {
			alert: "OmniRolloutStopped", after: 15 * time.Minute,
			series: `omni_rollout_stopped{namespace="team",policy="all",pod="one"} 1x9 stale` + "\n" +
				`omni_rollout_stopped{namespace="team",policy="all",pod="two"} _x10 1x100`,
		},
		"requests to a quiet server, all of which fail, among its probes": {
			alert: "OmniAPIServerErrors", after: 11 * time.Minute,
			series: `apiserver_request_total{job="omni-apiserver",code="200",verb="GET",subresource="/readyz"} 0+12x200` + "\n" +
				`apiserver_request_total{job="omni-apiserver",code="200",verb="GET",subresource="/livez"} 0+12x200` + "\n" +
				`apiserver_request_total{job="omni-apiserver",code="200",verb="GET",subresource="/healthz"} 0+12x200` + "\n" +
				`apiserver_request_total{job="omni-apiserver",code="500",verb="GET",resource="omniclusters"} 0+1.8x200`,
		},
		"probes that fail, and requests that do not": {
			alert: "OmniAPIServerErrors", quiet: true,
			series: `apiserver_request_total{job="omni-apiserver",code="500",verb="GET",subresource="/readyz"} 0+36x200` + "\n" +
				`apiserver_request_total{job="omni-apiserver",code="200",verb="GET",resource="omniclusters"} 0+2x200`,
		},
		"a server that is not ready, before and after a restart": {
			alert: "OmniAPIServerNotReady", after: 11 * time.Minute,
			series: `apiserver_request_total{job="omni-apiserver",pod="one",instance="a",code="500",subresource="/readyz"} 0+6x6 stale` + "\n" +
				`apiserver_request_total{job="omni-apiserver",pod="one",instance="b",code="500",subresource="/readyz"} _x7 0+6x200`,
		},
		"a server that takes nine minutes to become ready": {
			alert: "OmniAPIServerNotReady", quiet: true,
			series: `apiserver_request_total{job="omni-apiserver",pod="one",code="500",subresource="/readyz"} 0+6x8 48x200` + "\n" +
				`apiserver_request_total{job="omni-apiserver",pod="one",code="200",subresource="/readyz"} _x8 0+6x200`,
		},
		"a Helm action that failed once": {
			alert: "OmniHelmActionsFail", quiet: true,
			series: `omni_helm_actions_total{action="install",result="failure"} 0x100 1x100`,
		},
		"a Helm action that fails again under another leader": {
			alert: "OmniHelmActionsFail", after: 16 * time.Minute,
			series: `omni_helm_actions_total{action="install",result="failure",pod="one"} 0x4 1x4 stale` + "\n" +
				`omni_helm_actions_total{action="install",result="failure",pod="two"} _x10 0 1x100`,
		},
		"snapshots that hang until they are given up": {
			alert: "OmniSnapshotsFail", after: 70 * time.Minute,
			series: `omni_apiserver_etcd_snapshot_failures_total{job="omni-apiserver"} 0x29 1x34 2x34 3x34 4x34 5x34`,
		},
		"snapshots that fail before and after a restart": {
			alert: "OmniSnapshotsFail", after: 70 * time.Minute,
			series: `omni_apiserver_etcd_snapshot_failures_total{job="omni-apiserver",instance="one"} 0x29 1x8 stale` + "\n" +
				`omni_apiserver_etcd_snapshot_failures_total{job="omni-apiserver",instance="two"} _x40 0x24 1x34 2x34`,
		},
		"a snapshot that failed once": {
			alert: "OmniSnapshotsFail", quiet: true,
			series: `omni_apiserver_etcd_snapshot_failures_total{job="omni-apiserver"} 0x9 1x200`,
		},
		"a release that has drifted, under two leaders": {
			alert: "OmniHelmReleaseDrifted", after: 30 * time.Minute,
			series: `omni_helm_drifted{namespace="team",name="app",pod="one"} 1x9 stale` + "\n" +
				`omni_helm_drifted{namespace="team",name="app",pod="two"} _x10 1x100`,
		},
		"a release that is corrected again and again": {
			alert: "OmniHelmReleaseDrifted", quiet: true,
			series: `omni_helm_drifted{namespace="team",name="app"} 1x1 0x9 1x1 0x9 1x1 0x9 1x1 0x9 1x1 0x9 1x1 0x9`,
		},
		"a release that has drifted and is suspended": {
			alert: "OmniHelmReleaseDrifted", quiet: true,
			series: `omni_helm_drifted{namespace="team",name="app"} 1x200` + "\n" +
				`omni_resource_info{kind="OmniHelmRelease",namespace="team",name="app",suspended="true",ready="True"} 1x200`,
		},
		"a key that lives for three days, in its first two": {
			alert: "OmniKeyExpires", quiet: true,
			series: `omni_service_account_expiration_timestamp_seconds{namespace="team",name="omni"} 259200x200` + "\n" +
				`omni_service_account_renewal_timestamp_seconds{namespace="team",name="omni"} 172800x200`,
		},
		"a key that lives for three hours, in its last": {
			alert: "OmniKeyExpires", after: 121 * time.Minute,
			series: `omni_service_account_expiration_timestamp_seconds{namespace="team",name="omni"} 10800x200` + "\n" +
				`omni_service_account_renewal_timestamp_seconds{namespace="team",name="omni"} 7200x200`,
		},
		"a kubeconfig that is not renewed, under two leaders": {
			alert: "OmniKubeconfigExpires", after: 16 * time.Minute,
			series: `omni_kubeconfig_renewal_timestamp_seconds{namespace="team",name="app",pod="one"} 0x9 stale` + "\n" +
				`omni_kubeconfig_renewal_timestamp_seconds{namespace="team",name="app",pod="two"} _x10 0x100`,
		},
		"a kubeconfig whose export is suspended": {
			alert: "OmniKubeconfigExpires", quiet: true,
			series: `omni_kubeconfig_renewal_timestamp_seconds{namespace="team",name="app"} 0x200` + "\n" +
				`omni_resource_info{kind="OmniKubeconfigExport",namespace="team",name="app",suspended="true",ready="True"} 1x200`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := alerts(t)[test.alert]

			end := test.after
			if test.quiet {
				end = 3 * time.Hour
			}

			minutes(t, test.series).each(of, end, func(at time.Duration, fires []firing) {
				if want := !test.quiet && at == test.after; want && len(fires) != 1 {
					t.Errorf("after %s: %v fires, want one", at, fires)
				} else if !want && len(fires) > 0 {
					t.Fatalf("after %s it fires already: %v", at, fires)
				}
			})
		})
	}
}

// One leader is away, whether its metrics say so or are not there. The chart serves two namespaces.
func TestControllerDown(t *testing.T) {
	down := rendered(t)["OmniControllerDown"]

	leads := func(pod, value string) string {
		return `leader_election_master_status{job="omni-controller-metrics",name="omni-controller",pod="` + pod + `"} ` + value + "x200\n"
	}

	for name, test := range map[string]struct {
		series string
		want   int
	}{
		"both lead":           {leads("a", "1") + leads("a2", "0") + leads("b", "1"), 0},
		"one does not":        {leads("a", "1") + leads("b", "0"), 1},
		"one is away":         {leads("a", "1"), 1},
		"nobody is there":     {`up{job="omni-apiserver"} 1x200`, 1},
		"nobody leads":        {leads("a", "0") + leads("b", "0"), 1},
		"one came back":       {leads("a", "1") + `leader_election_master_status{job="omni-controller-metrics",pod="b"} 0x4 1x200`, 0},
		"with a jobLabel":     {strings.ReplaceAll(leads("a", "1")+leads("b", "1"), "-metrics", ""), 0},
		"another job's leads": {leads("a", "1") + `leader_election_master_status{job="other",name="omni-controller"} 1x200`, 1},
	} {
		if fires := minutes(t, test.series).at(down, 8*time.Minute); len(fires) != test.want {
			t.Errorf("%s: %d alerts, want %d: %+v", name, len(fires), test.want, fires)
		}
	}
}
