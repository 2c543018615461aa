//go:build unix && !linux

package env

import "errors"

var errNoMemoryGroups = errors.New("only Linux has control groups")

type memoryGroup struct{}

// CanLimitMemory returns why this machine does not let a test bound the memory of what it starts, or nil.
func CanLimitMemory() error { return errNoMemoryGroups }

func newMemoryGroup(string, uint64) (*memoryGroup, error) { return nil, errNoMemoryGroups }

func (g *memoryGroup) wrap(binary string, args []string) (string, []string) { return binary, args }

func (g *memoryGroup) kills() int { return 0 }

func (g *memoryGroup) remove() error { return nil }
