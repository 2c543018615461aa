package v1alpha1

// IsZero tells whether the template adds nothing. One with empty maps, as a manifest may have it, is then stored as none:
// it would read back as none, and the next apply of the same manifest would count as a change.
func (t SecretTemplate) IsZero() bool { return len(t.Labels) == 0 && len(t.Annotations) == 0 }

// IsZero tells whether nothing is said about drift; an empty list of exceptions says nothing.
func (d DriftDetection) IsZero() bool { return d.Mode == "" && len(d.Ignore) == 0 }
