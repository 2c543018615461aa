// Package version reports which build of the program runs.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// The linker sets these two (-X, see `make build`); nothing writes them later. The linker can only set package
// variables.
var (
	release string // tag or description of the sources, such as v0.3.1
	commit  string // full hash of the built commit, with the suffix -dirty if there were changes
)

const (
	// unknownRelease is the release of a build without `make build`.
	unknownRelease = "dev"
	// shortHash is how many digits of a commit UserAgent shows.
	shortHash = 12
)

// Info describes a build.
type Info struct {
	// Release is the tag or description of the sources, or "dev".
	Release string
	// Commit is the full hash of the commit, perhaps with the suffix -dirty. Empty if unknown.
	Commit string
	// Go is the version of the Go tool chain, such as go1.26.8.
	Go string
	// Platform is operating system and architecture, such as linux/amd64.
	Platform string
}

// Get returns the Info of the running program. If the linker did not set the commit, it comes from the build info that
// the Go tool chain embeds, which may have none.
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

// recorded returns the commit in the build info.
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

// String returns one line for people: v0.3.1 (commit 0123456789ab, go1.26.8, linux/amd64).
func (i Info) String() string {
	commit := i.Commit
	if commit == "" {
		commit = "unknown"
	}

	return fmt.Sprintf("%s (commit %s, %s, %s)", i.Release, commit, i.Go, i.Platform)
}

// UserAgent returns the User-Agent of a program of this name. The name comes first, because API servers derive the
// default field manager from the part before the slash.
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
