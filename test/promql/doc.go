// Package promql evaluates the alerts and dashboards of the chart with Prometheus' own engine, over what both programs
// exposed while the demonstration ran (testdata/recorded.txt), and draws the dashboards for the documentation.
//
// It is a module of its own, because Prometheus brings along what neither program needs.
//
//	go run ./test/demo --metrics test/promql/testdata/recorded.txt   # records anew, in the root of the repository
//	go test ./... -update                                            # draws anew, in this directory
package promql
