package charts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// read returns the body of an answer, at most limit bytes of it.
func (s *sourceClient) read(ctx context.Context, response *http.Response, limit int64, what string) ([]byte, error) {
	data, done, err := s.readLarge(ctx, response, limit, what)
	if err != nil {
		return nil, err
	}

	done()

	return data, nil
}

// readLarge returns the body of an answer, at most limit bytes of it. While it is
// large it has one of the slots for that; done gives it back when the data is
// not needed any more.
func (s *sourceClient) readLarge(ctx context.Context, response *http.Response, limit int64, what string) (data []byte, done func(), err error) {
	at := shown(response.Request.URL)

	if response.ContentLength > limit {
		return nil, nil, tooLarge(what, at, limit)
	}

	release := func() {}

	defer func() {
		if err != nil {
			release()
		}
	}()

	var buffer bytes.Buffer

	for _, step := range []int64{min(smallBytes, limit), limit} {
		// One byte more than may be there tells that there is more.
		if _, err := io.Copy(&buffer, io.LimitReader(response.Body, step+1-int64(buffer.Len()))); err != nil {
			return nil, nil, explain(fmt.Errorf("read %s: %w", what, err), at)
		}

		switch size := int64(buffer.Len()); {
		case size > limit:
			return nil, nil, tooLarge(what, at, limit)
		case size <= step:
			return buffer.Bytes(), release, nil
		}

		entered, err := s.downloads.enterLarge(ctx)
		if err != nil {
			return nil, nil, err
		}

		release = entered

		if response.ContentLength > 0 {
			buffer.Grow(int(response.ContentLength) - buffer.Len() + bytes.MinRead)
		}
	}

	return nil, nil, tooLarge(what, at, limit)
}

func tooLarge(what, at string, limit int64) error {
	return fail(TooLarge, "%s: the %s is larger than the limit of %d MiB", at, what, limit>>20)
}

// discard ends an answer that is not read.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxErrorBytes)
	_ = response.Body.Close()
}

// refused explains an answer that is not the one that was asked for.
func (s *sourceClient) refused(response *http.Response, what string) error {
	at := shown(response.Request.URL)

	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if s.credentials.empty() {
			return fail(Unauthorized, "%s wants credentials (HTTP %d): set authSecretRef", at, code)
		}

		return fail(Unauthorized, "%s does not accept the credentials of authSecretRef (HTTP %d)", at, code)
	case code == http.StatusNotFound || code == http.StatusGone:
		return fail(NotFound, "%s: there is no such %s (HTTP %d)", at, what, code)
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return fail(Unreachable, "%s answers HTTP %d", at, code)
	default:
		return fail(Invalid, "%s answers HTTP %d instead of the %s", at, code, what)
	}
}
