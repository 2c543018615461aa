package env

import "slices"

// rareGC lets a Kubernetes program take more memory before it collects garbage, up to 100 MB more for kube-apiserver. It saves
// a seventh of the processor's time that a test takes. Our own programs run as they are deployed.
const rareGC = "GOGC=400"

// start starts a process of the hub, with its log in the hub's directory.
func (h *Hub) start(spec processSpec) (*process, error) {
	spec.logPath = h.LogPath(spec.name)

	if spec.foreign && !h.asDeployed {
		spec.env = append(spec.env, rareGC)
	}

	p, err := startProcess(spec)
	if err != nil {
		return nil, err
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.processes = append(h.processes, p)

	return p, nil
}

// process returns the hub's running or ended process of that name, or nil.
func (h *Hub) process(name string) *process {
	h.mu.Lock()
	defer h.mu.Unlock()

	for _, p := range h.processes {
		if p.spec.name == name {
			return p
		}
	}

	return nil
}

// forget takes a process off the list of those that Stop ends.
func (h *Hub) forget(gone *process) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.processes = slices.DeleteFunc(h.processes, func(p *process) bool { return p == gone })
}

// reservePort reserves a port until the hub stops.
func (h *Hub) reservePort() (*port, error) {
	p, err := reservePort()
	if err != nil {
		return nil, err
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.ports = append(h.ports, p)

	return p, nil
}

// ProcessIDs returns the process ID of every process that the hub has started and not
// stopped, by name.
func (h *Hub) ProcessIDs() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()

	pids := make(map[string]int, len(h.processes))
	for _, p := range h.processes {
		pids[p.spec.name] = p.pid
	}

	return pids
}
