package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseMemory(t *testing.T) {
	got, err := parseMemory("Name:\tx\nVmHWM:\t     300 kB\nVmRSS:\t     200 kB\nRssFile:\t     50 kB\nThreads:\t9\n")
	if want := (memory{resident: 200 << 10, file: 50 << 10, peak: 300 << 10}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}

	for _, broken := range []string{"", "Name:\tx\n", "VmRSS:\tmany kB\n"} {
		if _, err := parseMemory(broken); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}

func TestParseCPU(t *testing.T) {
	got, err := parseCPU("12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 100 50 30 20 20\n")
	if err != nil || got != 2*time.Second {
		t.Errorf("%s, %v", got, err)
	}

	for _, broken := range []string{"", "12 (a) S 1 2", "12 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 0 0 0"} {
		if _, err := parseCPU(broken); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}

// What children use and hold counts: omni-controller renders charts in them.
func TestChildrenCount(t *testing.T) {
	child := exec.Command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo; exec sleep 60")

	said, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	before, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})

	if _, err := said.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}

	own, err := ownCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}

	if all, err := cpuOf(os.Getpid()); err != nil || all <= own || all <= before {
		t.Errorf("%s with children, %s without, %s before: %v", all, own, before, err)
	} else if this, err := cpuOfThis(); err != nil || this >= all {
		t.Errorf("this process used %s, and %s with its children: %v", this, all, err)
	}

	alone, err := ownMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}

	if all, err := memoryOf(os.Getpid()); err != nil || all.resident == alone.resident || all.file != alone.file {
		t.Errorf("%+v with children, %+v without: %v", all, alone, err)
	}
}

func TestOwnProcess(t *testing.T) {
	if got, err := memoryOf(os.Getpid()); err != nil || got.resident == 0 || got.peak < got.resident/2 {
		t.Errorf("%+v, %v", got, err)
	}

	if _, err := cpuOf(os.Getpid()); err != nil {
		t.Error(err)
	}

	if _, err := cpuOf(1 << 30); err == nil {
		t.Error("a process that does not exist has processor time")
	}
}
