package e2e

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// hostileChart does something to the process that renders it.
func hostileChart(version, template string) chartserver.Chart {
	chart := chartserver.ConfigMapChart("demo", version)
	chart.Files["templates/hostile.yaml"] = template

	return chart
}

// A chart that ends whatever renders it ends nothing but a worker: the release stalls, what is deployed stays, others go
// on. A restart of the controller, which finds the same chart again, changes nothing.
func TestHelmReleaseHostileCharts(t *testing.T) {
	slow(t)
	r := newReleasing(t)
	r.charts.Add(hostileChart("6.0.0", `{{ $a := dict }}{{ $_ := set $a "a" $a }}{{ $a }}`))
	r.charts.Add(hostileChart("6.1.0", `{{ $a := "x" }}{{ range until 40 }}{{ $a = print $a $a }}{{ end }}`))
	r.apply(r.release())
	r.ready("ohr", "app")

	r.apply(r.releaseOf("app", "6.0.0"))
	r.stalls("app", v1alpha1.ReasonChartRefused, "chart demo 6.0.0", "without end", "stays as it is")
	r.apply(r.releaseOf("app", "6.1.0"))
	r.stalls("app", v1alpha1.ReasonChartRefused, "chart demo 6.1.0", "memory", "--render-memory")

	before := r.status("app")

	r.crash()
	r.apply(r.releaseOf("other", "1.0.0"))
	r.ready("ohr", "other")
	r.stalls("app", v1alpha1.ReasonChartRefused, "chart demo 6.1.0")

	if after := r.status("app"); !after.LastActionTime.Equal(before.LastActionTime) {
		t.Errorf("it was tried again: %+v", after)
	}

	r.waitData("app", map[string]string{"chart": "1.0.0", "greeting": "hello"})
	r.wantRecords("app", "1 deployed")

	r.apply(r.release("    values: {data: {greeting: again}}"))
	r.ready("ohr", "app")
}
