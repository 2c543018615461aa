package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	handler := newHandler([]string{"v1.13.2", "v1.13.3"}, []string{"v1.35.0", "v1.35.1"}, []string{"siderolabs/iscsi-tools"})

	const schematic = "customization: {}\n"
	const id = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

	for _, test := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"versions", "GET", "/versions", "", 200, `["v1.13.2","v1.13.3"]`},
		{"broken versions", "GET", "/versions?broken=true", "", 200, `[]`},
		{"overlays", "GET", "/version/v1.13.2/overlays/official", "", 200, `[]`},
		{"talosctl", "GET", "/talosctl/v1.13.2", "", 200, `[]`},
		{"missing schematic", "GET", "/schematics/" + id, "", 404, "no such schematic"},
		{"registry root", "GET", "/v2/", "", 200, ""},
		{"kubelet tags", "GET", "/v2/siderolabs/kubelet/tags/list", "", 200, `{"name":"siderolabs/kubelet","tags":["v1.35.0","v1.35.1"]}`},
		{"other repository", "GET", "/v2/library/busybox/tags/list", "", 404, "404 page not found"},
		{"too large", "POST", "/schematics", strings.Repeat("x", maxSchematic+1), 400, "http: request body too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, body := call(handler, test.method, test.path, test.body)
			if status != test.status || body != test.want {
				t.Errorf("got %d %q, want %d %q", status, body, test.status, test.want)
			}
		})
	}

	t.Run("schematic comes back", func(t *testing.T) {
		const want = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

		status, body := call(handler, "POST", "/schematics", schematic)
		if status != 201 || body != `{"id":"`+want+`","schematic":"customization: {}\n"}` {
			t.Fatalf("got %d %q", status, body)
		}

		if status, body := call(handler, "GET", "/schematics/"+want, ""); status != 200 || body != strings.TrimSpace(schematic) {
			t.Errorf("got %d %q", status, body)
		}
	})

	t.Run("extension", func(t *testing.T) {
		_, body := call(handler, "GET", "/version/v1.13.2/extensions/official", "")
		if !strings.HasPrefix(body, `[{"name":"siderolabs/iscsi-tools","ref":"registry.invalid/siderolabs/iscsi-tools:v0","digest":"sha256:`) {
			t.Errorf("got %q", body)
		}
	})
}

func call(handler http.Handler, method, path, body string) (int, string) {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(method, path, strings.NewReader(body)))

	content, _ := io.ReadAll(recorder.Result().Body)

	return recorder.Code, strings.TrimSpace(string(content))
}
