package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// auditPolicy logs every request at level Metadata, once, as omni-apiserver's own default does.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    nonResourceURLs: [/healthz*, /livez*, /readyz*, /metrics, /openapi/*]
  - level: Metadata
`

// workloadAuditPolicy logs every request of the users that part (g) compares, discovery included,
// and of nobody else.
const workloadAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: [` + ourReleaser + `, ` + fluxReleaser + `]
  - level: None
`

// auditEvent is what we read of a line of an audit log.
type auditEvent struct {
	Stage                    string    `json:"stage"`
	Verb                     string    `json:"verb"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

// isWrite reports whether the request changes something.
func (e auditEvent) isWrite() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}

	return false
}

// isReview reports whether the request only asks a question in the form of a create.
func (e auditEvent) isReview() bool {
	switch e.ObjectRef.Resource {
	case "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews":
		return true
	}

	return false
}

// counted reports whether the event is the one at which a request is counted: its end, and the
// beginning of a watch, which has no end while it is of use.
func (e auditEvent) counted() bool {
	if e.Verb == "watch" {
		return e.Stage == "ResponseStarted"
	}

	return e.Stage == "ResponseComplete"
}

// what names the request: verb, resource and subresource.
func (e auditEvent) what() string {
	switch {
	case e.ObjectRef.Resource == "":
		return e.Verb + " discovery"
	case e.ObjectRef.Subresource != "":
		return e.Verb + " " + e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	default:
		return e.Verb + " " + e.ObjectRef.Resource
	}
}

// writesBy counts the writes of a user that an audit log holds since a time, by verb and resource.
func writesBy(log io.Reader, user string, since time.Time) (map[string]int, error) {
	return countEvents(log, func(e auditEvent) bool {
		return e.counted() && e.User.Username == user && e.isWrite() && !e.isReview() && !e.RequestReceivedTimestamp.Before(since)
	})
}

// requestsBy counts all requests of a user that an audit log holds since a time.
func requestsBy(log io.Reader, user string, since time.Time) (map[string]int, error) {
	return countEvents(log, func(e auditEvent) bool {
		return e.counted() && e.User.Username == user && !e.RequestReceivedTimestamp.Before(since)
	})
}

// countEvents counts the wanted events of an audit log by what they are.
func countEvents(log io.Reader, wanted func(auditEvent) bool) (map[string]int, error) {
	counts := map[string]int{}
	lines := bufio.NewReader(log)

	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return counts, nil // a line without its end is still being written
		} else if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}

		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}

		if wanted(event) {
			counts[event.what()]++
		}
	}
}

// writesInFile is writesBy of a file.
func writesInFile(path, user string, since time.Time) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer file.Close()

	return writesBy(file, user, since)
}

// requestsInFile is requestsBy of a file.
func requestsInFile(path, user string, since time.Time) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer file.Close()

	return requestsBy(file, user, since)
}

// writesOf sums the counts of what changes something.
func writesOf(counts map[string]int) int {
	sum := 0

	for what, count := range counts {
		verb, resource, _ := strings.Cut(what, " ")

		e := auditEvent{Verb: verb}
		e.ObjectRef.Resource = resource

		if e.isWrite() && !e.isReview() {
			sum += count
		}
	}

	return sum
}

// total sums counts.
func total(counts map[string]int) int {
	sum := 0
	for _, count := range counts {
		sum += count
	}

	return sum
}
