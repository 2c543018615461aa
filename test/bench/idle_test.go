package main

import "testing"

func TestParseLoad(t *testing.T) {
	const metrics = `# HELP workqueue_depth Current depth of workqueue by workqueue and priority
# TYPE workqueue_depth gauge
workqueue_depth{controller="omnicluster",name="omnicluster",priority="0"} 3
workqueue_depth{controller="omniworkers",name="omniworkers",priority=""} 1
workqueue_depth_other{name="x"} 100
controller_runtime_reconcile_total{controller="omnicluster",result="success"} 12
controller_runtime_reconcile_total{controller="omniworkers",result="error"} 1e+01
`

	got, err := parseLoad(metrics)
	if want := (load{queued: 4, done: 22}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}

	if _, err := parseLoad("workqueue_depth{} many\n"); err == nil {
		t.Error("no error")
	}
}
