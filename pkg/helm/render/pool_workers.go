package render

import (
	"context"
	"time"
)

// take returns a worker: an idle one, or a new one. There are never more workers than slots,
// so a new one takes the place of an idle one.
func (p *Pool) take(ctx context.Context, unused bool) (*process, error) {
	for {
		worker := p.pop()
		if worker == nil {
			return p.start(ctx)
		}

		if stopped := worker.retire.Stop(); stopped && !unused && !worker.gone() {
			return worker, nil
		}

		worker.end()

		if unused {
			return p.start(ctx)
		}
	}
}

func (p *Pool) start(ctx context.Context) (*process, error) {
	worker, err := start(ctx, p.options.Program, p.options.Memory)
	if err == nil && worker.unfiltered != "" {
		p.unfiltered.Do(func() {
			p.options.Log.V(1).Info("The processes that render charts are bounded, but the kernel does not filter their system calls", "reason", worker.unfiltered)
		})
	}

	return worker, err
}

func (p *Pool) pop() *process {
	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.idle) == 0 {
		return nil
	}

	last := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]

	return last
}

// put keeps a worker for a while.
func (p *Pool) put(worker *process) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.idle = append(p.idle, worker)
	worker.retire = time.AfterFunc(p.options.Idle, func() { p.drop(worker) })
}

// drop ends a worker that nobody has taken meanwhile.
func (p *Pool) drop(worker *process) {
	p.mu.Lock()

	for i, one := range p.idle {
		if one == worker {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)

			defer worker.end()

			break
		}
	}

	p.mu.Unlock()
}

// Close ends the idle workers. What renders goes on.
func (p *Pool) Close() {
	for worker := p.pop(); worker != nil; worker = p.pop() {
		worker.retire.Stop()
		worker.end()
	}
}
