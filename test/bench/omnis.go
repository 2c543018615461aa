package main

import (
	"context"
	"errors"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// omnis are the simulated Omnis of the fleet, each with a connection. The clusters are dealt out to them by their
// numbers; the probe is in the first.
type omnis []*omnisim.Server

// startOmnis starts so many, each with its share of machines that no cluster uses.
func startOmnis(count, spare int) (omnis, error) {
	var started omnis

	for i := range count {
		one, err := omnisim.Start(omnisim.Options{})
		if err != nil {
			return started, err
		}

		started = append(started, one)

		if _, err := one.AddMachines(shareOf(spare, count, i)); err != nil {
			return started, err
		}
	}

	return started, nil
}

// shareOf is the part of a number that goes to the i-th of so many.
func shareOf(number, count, i int) int { return (number + count - 1 - i) / count }

// of returns the Omni of the cluster with a number.
func (o omnis) of(cluster int) *omnisim.Server { return o[cluster%len(o)] }

// connectionOf is the name of the connection of the cluster with a number.
func (o omnis) connectionOf(cluster int) string { return connectionName(cluster % len(o)) }

// connectionName is the name of a connection.
func connectionName(i int) string {
	if i == 0 {
		return "omni"
	}

	return fmt.Sprintf("omni-%d", i)
}

// addMachines makes the machines of the clusters first, first+1 and so on.
func (o omnis) addMachines(first, clusters int) ([][machinesPerCluster]string, error) {
	machines := make([][machinesPerCluster]string, clusters)

	for i := range machines {
		ids, err := o.of(first + i).AddMachines(machinesPerCluster)
		if err != nil {
			return nil, err
		}

		machines[i] = [machinesPerCluster]string(ids)
	}

	return machines, nil
}

func (o omnis) forgetRequests() {
	for _, one := range o {
		one.ForgetRequests()
	}
}

// writes are what all have accepted since they were told to forget.
func (o omnis) writes() []omnisim.Write {
	var all []omnisim.Write
	for _, one := range o {
		all = append(all, one.Writes()...)
	}

	return all
}

// requests is how many requests all have counted since they were told to forget.
func (o omnis) requests() int {
	sum := 0

	for _, one := range o {
		for _, count := range one.Requests() {
			sum += count
		}
	}

	return sum
}

// upgrading are the clusters that are being upgraded.
func (o omnis) upgrading(ctx context.Context) ([]string, error) {
	var (
		all      []string
		problems []error
	)

	for _, one := range o {
		names, err := one.Upgrading(ctx)
		all, problems = append(all, names...), append(problems, err)
	}

	return all, errors.Join(problems...)
}

func (o omnis) close() {
	for _, one := range o {
		one.Close()
	}
}
