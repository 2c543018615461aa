package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
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

// isWrite says whether the request changes something.
func (e auditEvent) isWrite() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}

	return false
}

// isReview says whether the request only asks a question in the form of a create.
func (e auditEvent) isReview() bool {
	switch e.ObjectRef.Resource {
	case "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews":
		return true
	}

	return false
}

// writesBy counts the writes of a user that an audit log holds since a time, by verb and resource.
func writesBy(log io.Reader, user string, since time.Time) (map[string]int, error) {
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

		if event.Stage != "ResponseComplete" || event.User.Username != user || !event.isWrite() || event.isReview() ||
			event.RequestReceivedTimestamp.Before(since) {
			continue
		}

		what := event.Verb + " " + event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			what += "/" + event.ObjectRef.Subresource
		}

		counts[what]++
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

// total sums counts.
func total(counts map[string]int) int {
	sum := 0
	for _, count := range counts {
		sum += count
	}

	return sum
}
