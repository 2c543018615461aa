package charts

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
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

// registry sends a request to a registry. If the registry asks for a token, one is fetched, or if it asks for the credentials
// themselves, they are sent from then on, and the request is sent once more. Unasked it gets none: some registries refuse a
// request with credentials of another kind than they want.
func (s *sourceClient) registry(ctx context.Context, method, location string, header http.Header) (*http.Response, error) {
	response, err := s.do(ctx, method, location, header)
	if err != nil || response.StatusCode != http.StatusUnauthorized || s.token != "" {
		return response, err
	}

	challenge, wantsToken := bearerChallenge(response.Header.Values("WWW-Authenticate"))
	if !wantsToken && (s.basic || s.credentials.empty()) {
		return response, nil
	}

	discard(response)

	if !wantsToken {
		s.basic = true

		return s.do(ctx, method, location, header)
	}

	service, unusable := s.tokenService(challenge)
	if unusable != nil {
		return s.withoutToken(ctx, method, location, header, unusable)
	}

	if s.token, err = s.fetchToken(ctx, service); err != nil {
		return nil, err
	}

	return s.do(ctx, method, location, header)
}

// withoutToken sends a request with the credentials to a registry whose token service may not be used: registries such as Harbor, at
// another name than their own, take both. If this one does not, the error is why the service may not be used.
func (s *sourceClient) withoutToken(ctx context.Context, method, location string, header http.Header, unusable error) (*http.Response, error) {
	if s.basic || s.credentials.empty() {
		return nil, unusable
	}

	s.basic = true

	response, err := s.do(ctx, method, location, header)
	if err != nil {
		return nil, err
	}

	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusBadRequest {
		discard(response)

		return nil, unusable
	}

	return response, nil
}

// bearerChallenge reads the parameters of a Bearer challenge.
func bearerChallenge(headers []string) (map[string]string, bool) {
	for _, header := range headers {
		scheme, rest, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}

		parameters := map[string]string{}

		for rest != "" {
			var name, value string

			name, rest, _ = strings.Cut(rest, "=")

			if after, quoted := strings.CutPrefix(rest, `"`); quoted {
				value, rest, _ = strings.Cut(after, `"`)
				rest = strings.TrimPrefix(rest, ",")
			} else {
				value, rest, _ = strings.Cut(rest, ",")
			}

			parameters[strings.ToLower(strings.Trim(name, " ,"))] = value
		}

		return parameters, parameters["realm"] != ""
	}

	return nil, false
}

// tokenService is what to ask the token service that a registry names. With credentials it has to belong to the registry's own
// domain: it gets them.
func (s *sourceClient) tokenService(challenge map[string]string) (*url.URL, error) {
	realm, err := url.Parse(challenge["realm"])
	if err != nil || realm.Scheme != "https" || realm.User != nil {
		return nil, fail(Invalid, "registry %s names a token service that is not an https URL", s.host)
	}

	if !s.credentials.empty() && !sameDomain(realm.Host, s.host) {
		return nil, fail(Unauthorized, "registry %s wants the credentials sent to %s, which is another domain: they are not", s.host, realm.Host)
	}

	query := realm.Query()
	query.Set("service", challenge["service"])

	if challenge["scope"] != "" {
		query.Set("scope", challenge["scope"])
	}

	realm.RawQuery = query.Encode()

	return realm, nil
}

// fetchToken asks a token service.
func (s *sourceClient) fetchToken(ctx context.Context, service *url.URL) (string, error) {
	asker := *s
	asker.token, asker.host, asker.basic = "", service.Host, true

	response, err := asker.do(ctx, http.MethodGet, service.String(), nil)
	if err != nil {
		return "", err
	}
	defer discard(response)

	if response.StatusCode != http.StatusOK {
		return "", s.refused(response, "token")
	}

	data, err := s.read(ctx, response, maxTokenBytes, "token")
	if err != nil {
		return "", err
	}

	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}

	if err := decodeJSON(ctx, data, maxSmallNodes, &answer); err != nil || cmp.Or(answer.Token, answer.AccessToken) == "" {
		return "", fail(Unauthorized, "the token service %s of registry %s gives no token", service.Host, s.host)
	}

	return "Bearer " + cmp.Or(answer.Token, answer.AccessToken), nil
}

// sameDomain reports whether two hosts are the same, or belong to one registered domain.
func sameDomain(a, b string) bool {
	nameA, nameB := strings.ToLower((&url.URL{Host: a}).Hostname()), strings.ToLower((&url.URL{Host: b}).Hostname())
	if nameA == nameB {
		return true
	}

	// Numbers have no domain.
	if net.ParseIP(nameA) != nil || net.ParseIP(nameB) != nil {
		return false
	}

	domainA, err := publicsuffix.EffectiveTLDPlusOne(nameA)
	if err != nil {
		return false
	}

	domainB, err := publicsuffix.EffectiveTLDPlusOne(nameB)

	return err == nil && domainA == domainB
}
