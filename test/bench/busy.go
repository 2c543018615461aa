package main

import "time"

// processNames are those whose processor time is reported, bench being this one.
func processNames() []string {
	return []string{"kube-apiserver", "etcd", "kube-controller-manager", "omni-apiserver", "omni-controller", "bench"}
}

// servers is the processor time of what answers API requests, in seconds. Unlike the time on the
// clock it does not depend on what else the machine does.
func (b busy) servers() float64 {
	return b.CPU["kube-apiserver"] + b.CPU["etcd"] + b.CPU["omni-apiserver"]
}

// watchBusy notes the processor time that every process takes while something is done.
func (b *bench) watchBusy(what string, do func() error) error {
	before, begin := b.cpuTimes(), time.Now()
	err := do()
	row := busy{What: what, Seconds: time.Since(begin).Seconds(), CPU: map[string]float64{}}

	for name, after := range b.cpuTimes() {
		// A process that was started again begins at zero.
		if used := after - before[name]; used >= 0 {
			row.CPU[name] = used.Seconds()
		} else {
			row.CPU[name] = after.Seconds()
		}
	}

	b.results.Busy = append(b.results.Busy, row)

	return err
}

// cpuTimes is the processor time of every process so far; one that has just ended is left out.
func (b *bench) cpuTimes() map[string]time.Duration {
	times := map[string]time.Duration{}

	for name, pid := range b.stack.ProcessIDs() {
		if used, err := cpuOf(pid); err == nil {
			times[name] = used
		}
	}

	// The others are children of this process: they have their own columns.
	if used, err := cpuOfThis(); err == nil {
		times["bench"] = used
	}

	return times
}
