package charts

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// maxTagPages bounds how many pages of tags are read.
const maxTagPages = 50

// newestTag lists the tags of a chart and chooses the wanted version.
func (s *sourceClient) newestTag(ctx context.Context, base string, source *Source) (string, error) {
	versions, err := s.tags(ctx, base+"/tags/list")
	if err != nil {
		return "", err
	}

	at, err := choose(versions, source.Version)
	if err != nil {
		return "", err
	}

	if at < 0 {
		return "", fail(NotFound, "%s has no %s", source.Chart, describe(source.Version))
	}

	return versions[at], nil
}

// tags reads all pages of a list of tags, as versions.
func (s *sourceClient) tags(ctx context.Context, location string) ([]string, error) {
	var versions []string

	for range maxTagPages {
		response, err := s.registry(ctx, http.MethodGet, location, nil) //nolint:bodyclose // readTags closes it
		if err != nil {
			return nil, err
		}

		page, err := readTags(ctx, s, response)
		if err != nil {
			return nil, err
		}

		if versions = append(versions, page...); len(versions) > maxTags {
			return nil, fail(TooLarge, "%s has more than %d tags: set chart.version to one version, for which no tags are listed", shown(response.Request.URL), maxTags)
		}

		next := nextPage(response)
		if next == "" {
			return versions, nil
		}

		location = next
	}

	return versions, nil
}

func readTags(ctx context.Context, s *sourceClient, response *http.Response) ([]string, error) {
	defer discard(response)

	if response.StatusCode != http.StatusOK {
		return nil, s.refused(response, "chart")
	}

	data, err := s.read(ctx, response, maxManifestBytes, "list of tags")
	if err != nil {
		return nil, err
	}

	return parseTags(ctx, data, shown(response.Request.URL))
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

// nextPage reads the Link header of a page; a page elsewhere is not followed.
func nextPage(response *http.Response) string {
	link, parameters, ok := strings.Cut(response.Header.Get("Link"), ";")
	if !ok || !strings.Contains(parameters, `rel="next"`) && !strings.Contains(parameters, "rel=next") {
		return ""
	}

	parsed, err := url.Parse(strings.Trim(strings.TrimSpace(link), "<>"))
	if err != nil {
		return ""
	}

	next := response.Request.URL.ResolveReference(parsed)
	if !sameOrigin(next, response.Request.URL) {
		return ""
	}

	return next.String()
}
