package charts

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	// maxTagPages bounds how many pages of tags are read.
	maxTagPages = 50
	// tagsOnPage is how many tags a page is asked to have, which is as many as most registries give at most.
	tagsOnPage = 1000
	// noTagsListed is what helps if a list of tags cannot be used.
	noTagsListed = "set chart.version to one version, for which no tags are listed"
)

// chosenTag is the best version on the pages of tags that were read. Only it is kept: the last page may be slow.
type chosenTag struct {
	*choice

	best  string // empty if there is none yet
	count int    // of all tags so far
}

// add chooses among the best so far and those of another page: the one that would be chosen from all of them.
func (c *chosenTag) add(ctx context.Context, versions []string) error {
	c.count += len(versions)

	at, err := c.among(ctx, slices.All(versions))
	if err == nil && at >= 0 {
		c.best = versions[at]
	}

	return err
}

// newestTag reads the pages of a list of tags and chooses the wanted version.
func (s *sourceClient) newestTag(ctx context.Context, base string, source *Source, wanted *choice) (string, error) {
	location, chosen := fmt.Sprintf("%s/tags/list?n=%d", base, tagsOnPage), &chosenTag{choice: wanted}

	for page := 1; location != ""; page++ {
		if page > maxTagPages {
			return "", fail(TooLarge, "%s has more than %d pages of tags: "+noTagsListed, shownText(location), maxTagPages)
		}

		response, err := s.registry(ctx, http.MethodGet, location, nil) //nolint:bodyclose // readTags closes it
		if err != nil {
			return "", err
		}

		if err := readTags(ctx, s, response, chosen); err != nil {
			return "", err
		}

		if chosen.count > maxTags {
			return "", fail(TooLarge, "%s has more than %d tags: "+noTagsListed, shown(response.Request.URL), maxTags)
		}

		if chosen.exact {
			break
		}

		if location, err = nextPage(response); err != nil {
			return "", err
		}
	}

	if err := chosen.failure(); err != nil {
		return "", err
	}

	if chosen.best == "" {
		return "", fail(NotFound, "%s has no %s", source.Chart, describe(source.Version))
	}

	return chosen.best, nil
}

// readTags reads a page of tags. As long as it is there it counts as a large answer, if it is one.
func readTags(ctx context.Context, s *sourceClient, response *http.Response, chosen *chosenTag) error {
	defer discard(response)

	if response.StatusCode != http.StatusOK {
		return s.refused(response, "chart")
	}

	data, done, err := s.readLarge(ctx, response, maxManifestBytes, "list of tags")
	if err != nil {
		return err
	}
	defer done()

	versions, err := parseTags(ctx, data, shown(response.Request.URL))
	if err != nil {
		return err
	}

	return chosen.add(ctx, versions)
}

// parseTags reads a page of tags, as versions. What is too long for a tag is left out.
func parseTags(ctx context.Context, data []byte, at string) ([]string, error) {
	var document struct {
		Tags []string `json:"tags"`
	}

	// Beside the tags there are a few names.
	if err := decodeJSON(ctx, data, maxTags+maxSmallNodes, &document); err != nil {
		return nil, unreadable(err, at, "list of tags")
	}

	versions := make([]string, 0, len(document.Tags))

	for _, tag := range document.Tags {
		if len(tag) <= maxTag {
			versions = append(versions, strings.ReplaceAll(tag, "_", "+"))
		}
	}

	return versions, nil
}

// nextPage reads the Link header of a page; empty if that is the last one. A page elsewhere is not followed: the error says so,
// because the newest version may be there.
func nextPage(response *http.Response) (string, error) {
	link, parameters, ok := strings.Cut(response.Header.Get("Link"), ";")
	if !ok || !strings.Contains(parameters, `rel="next"`) && !strings.Contains(parameters, "rel=next") {
		return "", nil
	}

	at := response.Request.URL

	parsed, err := url.Parse(strings.Trim(strings.TrimSpace(link), "<>"))
	if err != nil {
		return "", fail(Invalid, "%s names a next page of tags by something that is no URL: "+noTagsListed, shown(at))
	}

	next := at.ResolveReference(parsed)
	if !sameOrigin(next, at) {
		return "", fail(Invalid, "%s names the next page of tags elsewhere, at %s, which is not followed: "+noTagsListed, shown(at), shown(next))
	}

	return next.String(), nil
}
