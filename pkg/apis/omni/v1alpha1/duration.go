package v1alpha1

import "time"

// Parse returns the duration; 0 if it is empty. Its error is that of time.ParseDuration.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}

	return time.ParseDuration(string(d))
}

// OrDefault returns the parsed duration, or def if it is empty or invalid. It can be invalid in an object that was
// stored under an older rule.
func (d Duration) OrDefault(def time.Duration) time.Duration {
	parsed, err := d.Parse()
	if d == "" || err != nil {
		return def
	}

	return parsed
}
