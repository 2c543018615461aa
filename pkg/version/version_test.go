package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

func TestDescribe(t *testing.T) {
	noted := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: hash}, {Key: "vcs.modified", Value: modified},
		}}
	}

	for _, tc := range []struct {
		name, release, commit   string
		build                   *debug.BuildInfo
		wantRelease, wantCommit string
	}{
		{"linked", "v0.3.1", "abc", noted("true"), "v0.3.1", "abc"},
		{"noted by the tool chain", "", "", noted("false"), "dev", hash},
		{"noted, with changes", "", "", noted("true"), "dev", hash + "-dirty"},
		{"outside a repository", "", "", &debug.BuildInfo{}, "dev", ""},
		{"without modules", "", "", nil, "dev", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := describe(tc.release, tc.commit, tc.build)
			if got.Release != tc.wantRelease || got.Commit != tc.wantCommit || got.Go != runtime.Version() {
				t.Errorf("got %+v, want release %q, commit %q", got, tc.wantRelease, tc.wantCommit)
			}
		})
	}
}

func TestForPeopleAndServers(t *testing.T) {
	for _, tc := range []struct {
		info          Info
		line, program string
	}{
		{
			Info{Release: "v0.3.1", Commit: hash + "-dirty", Go: "go1.26.8", Platform: "linux/amd64"},
			"v0.3.1 (commit " + hash + "-dirty, go1.26.8, linux/amd64)",
			"omni-apiserver/v0.3.1 (linux/amd64) 0123456789ab",
		},
		{
			Info{Release: "dev", Go: "go1.26.8", Platform: "linux/arm64"},
			"dev (commit unknown, go1.26.8, linux/arm64)",
			"omni-apiserver/dev (linux/arm64)",
		},
	} {
		if got := tc.info.String(); got != tc.line {
			t.Errorf("got %q, want %q", got, tc.line)
		}

		if got := tc.info.UserAgent("omni-apiserver"); got != tc.program {
			t.Errorf("got %q, want %q", got, tc.program)
		}
	}
}

// Build info also exists in a test binary.
func TestGet(t *testing.T) {
	if got := Get(); got.Release == "" || !strings.Contains(got.Platform, "/") {
		t.Errorf("got %+v", got)
	}
}
