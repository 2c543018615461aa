package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// The linker sets these two (-X, see `make build`), before the program starts; nothing writes them later.
// The linker can only set variables of a package.
var (
	release string // tag or description of the sources, such as v0.3.1
	commit  string // full hash of the commit that was built, with -dirty behind it if there were changes
)

const (
	// unknownRelease is what a build without `make build` calls itself.
	unknownRelease = "dev"
	// shortHash is how many digits of a commit people are shown.
	shortHash = 12
)

// Info is what is known about a build.
type Info struct {
	// Release is the tag or description of the sources, or "dev".
	Release string
	// Commit is the full hash of the commit, perhaps with -dirty behind it. Empty: not known.
	Commit string
	// Go is the version of the Go tool chain, such as go1.26.8.
	Go string
	// Platform is operating system and architecture, such as linux/amd64.
	Platform string
}

// Get returns what is known about the running program. What the linker was not told comes from what the Go
// tool chain notes in every program, and that may be nothing.
func Get() Info {
	build, _ := debug.ReadBuildInfo()

	return describe(release, commit, build)
}

func describe(release, commit string, build *debug.BuildInfo) Info {
	info := Info{Release: release, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}

	if info.Release == "" {
		info.Release = unknownRelease
	}

	if info.Commit == "" && build != nil {
		info.Commit = recorded(build.Settings)
	}

	return info
}

// recorded is the commit that the Go tool chain noted.
func recorded(settings []debug.BuildSetting) string {
	var hash, dirty string

	for _, setting := range settings {
		switch {
		case setting.Key == "vcs.revision":
			hash = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "-dirty"
		}
	}

	if hash == "" {
		return ""
	}

	return hash + dirty
}

// String is one line for people: v0.3.1 (commit 0123456789ab, go1.26.8, linux/amd64).
func (i Info) String() string {
	commit := i.Commit
	if commit == "" {
		commit = "unknown"
	}

	return fmt.Sprintf("%s (commit %s, %s, %s)", i.Release, commit, i.Go, i.Platform)
}

// UserAgent is how a program of this name presents itself to servers: its name first, because API servers
// derive the default field manager from what stands before the slash.
func (i Info) UserAgent(program string) string {
	commit := i.Commit
	if len(commit) > shortHash {
		commit = commit[:shortHash]
	}

	if commit == "" {
		return fmt.Sprintf("%s/%s (%s)", program, i.Release, i.Platform)
	}

	return fmt.Sprintf("%s/%s (%s) %s", program, i.Release, i.Platform, commit)
}
